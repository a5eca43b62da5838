/// A copy of a store, made while it is in use, and a store made of such a copy.
///
/// The copy is one file: the live records as they are at one moment, and small files that belong to
/// them (the cluster's keys). History is left out. Nothing here needs an Env: it is called by
/// commands, which may block.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/store.h"

namespace muster::store {

struct SmallFile {
  std::string name;  // relative to the data folder, e.g. "pki/ca.key"
  std::string bytes;
};

struct Backup {
  Revision revision = 0;
  std::size_t records = 0;
  std::vector<SmallFile> files;
};

/// Copies the database `from` to the new file `to`, which appears when it is whole and durable.
Result<Backup> back_up(const std::string& from,
                       const std::string& to,
                       std::vector<SmallFile> files);

/// Makes the database `to`, which must not be there, of the copy `from`; the caller writes the
/// files. Revisions go on from a number that is larger than any that the copied cluster, or one
/// restored from the same copy earlier, can have reached since: what clients remember from then is
/// too old or unknown, never wrong.
Result<Backup> restore(const std::string& from, const std::string& to, Time now);

}  // namespace muster::store

#include "disk.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace muster::bottle {
namespace {

constexpr std::size_t kSector = 512;

void put(std::string& content, std::size_t offset, std::string_view bytes) {
  const std::size_t end = offset + bytes.size();
  if (content.size() < end) content.resize(end);
  std::memcpy(content.data() + offset, bytes.data(), bytes.size());
}

/// Undoes the file's last change; what it had written, if anything.
std::string undo(Disk::File& file) {
  const Disk::Change change = file.changes.back();
  file.changes.pop_back();
  std::string written =
      change.resize ? std::string() : file.content.substr(change.offset, change.bytes);
  file.content.resize(change.size);
  if (change.offset < change.size)
    put(file.content, change.offset, std::string_view(file.before).substr(change.covered));
  file.before.resize(change.covered);
  return written;
}

// ------------------------------------------------------------------------- SQLite's side

struct OpenFile {
  sqlite3_file base;
  Disk* disk;
  std::shared_ptr<Disk::File> file;
  bool delete_on_close;
  std::string name;
};

OpenFile& of(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }

int x_close(sqlite3_file* file) {
  OpenFile& open = of(file);
  if (open.delete_on_close) open.disk->remove(open.name);
  open.file.reset();
  open.name.~basic_string();
  return SQLITE_OK;
}

int x_read(sqlite3_file* file, void* out, int count, sqlite3_int64 offset) {
  const std::string& content = of(file).file->content;
  const auto from = static_cast<std::size_t>(offset), wanted = static_cast<std::size_t>(count);
  const std::size_t there = from >= content.size() ? 0 : std::min(wanted, content.size() - from);
  std::memcpy(out, content.data() + (there > 0 ? from : 0), there);
  if (there == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + there, 0, wanted - there);
  return SQLITE_IOERR_SHORT_READ;
}

int x_write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  return of(file).disk->write(
      *of(file).file,
      static_cast<std::size_t>(offset),
      std::string_view(static_cast<const char*>(bytes), static_cast<std::size_t>(count)));
}

int x_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return of(file).disk->resize(*of(file).file, static_cast<std::size_t>(size));
}

int x_sync(sqlite3_file* file, int) { return of(file).disk->sync(*of(file).file); }

int x_file_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(of(file).file->content.size());
  return SQLITE_OK;
}

// One process at a time has a database open here, with one connection.
int x_lock(sqlite3_file*, int) { return SQLITE_OK; }
int x_check_lock(sqlite3_file*, int* held) {
  *held = 0;
  return SQLITE_OK;
}
int x_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int x_sector_size(sqlite3_file*) { return kSector; }
int x_characteristics(sqlite3_file*) { return 0; }

int x_shm_map(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
  auto& shared = of(file).file->shared;
  while (static_cast<int>(shared.size()) <= region) {
    if (extend == 0) {
      *out = nullptr;
      return SQLITE_OK;
    }
    shared.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
  }
  *out = shared[static_cast<std::size_t>(region)].get();
  return SQLITE_OK;
}
int x_shm_lock(sqlite3_file*, int, int, int) { return SQLITE_OK; }
void x_shm_barrier(sqlite3_file*) {}
int x_shm_unmap(sqlite3_file* file, int remove) {
  if (remove != 0) of(file).file->shared.clear();
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = x_close,
    .xRead = x_read,
    .xWrite = x_write,
    .xTruncate = x_truncate,
    .xSync = x_sync,
    .xFileSize = x_file_size,
    .xLock = x_lock,
    .xUnlock = x_lock,
    .xCheckReservedLock = x_check_lock,
    .xFileControl = x_control,
    .xSectorSize = x_sector_size,
    .xDeviceCharacteristics = x_characteristics,
    .xShmMap = x_shm_map,
    .xShmLock = x_shm_lock,
    .xShmBarrier = x_shm_barrier,
    .xShmUnmap = x_shm_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

Disk& disk_of(sqlite3_vfs* vfs) { return *static_cast<Disk*>(vfs->pAppData); }

int x_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* given) {
  auto& open = *reinterpret_cast<OpenFile*>(file);
  Disk& disk = disk_of(vfs);
  const std::string wanted =
      name != nullptr ? name : fmt::format("temporary-{}", disk.operations());
  open.base.pMethods = nullptr;
  if ((flags & SQLITE_OPEN_CREATE) == 0 && !disk.has(wanted)) return SQLITE_CANTOPEN;
  open.disk = &disk;
  new (&open.file) std::shared_ptr<Disk::File>(disk.open(wanted));
  new (&open.name) std::string(wanted);
  open.delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  open.base.pMethods = &kMethods;
  if (given != nullptr) *given = flags;
  return SQLITE_OK;
}

int x_delete(sqlite3_vfs* vfs, const char* name, int) {
  if (!disk_of(vfs).stopped()) disk_of(vfs).remove(name);
  return disk_of(vfs).stopped() ? SQLITE_IOERR_DELETE : SQLITE_OK;
}
int x_access(sqlite3_vfs* vfs, const char* name, int, int* there) {
  *there = disk_of(vfs).has(name) ? 1 : 0;
  return SQLITE_OK;
}
int x_full_name(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}
int x_randomness(sqlite3_vfs* vfs, int count, char* out) {
  disk_of(vfs).fill_random(out, count);
  return count;
}
int x_sleep(sqlite3_vfs*, int us) { return us; }
int x_time(sqlite3_vfs*, double* out) {
  *out = 2461000.5;  // a day in 2025; nothing here asks SQLite for the time
  return SQLITE_OK;
}
int x_last_error(sqlite3_vfs*, int, char*) { return 0; }

int next_number = 0;

}  // namespace

// ------------------------------------------------------------------------------- the disk

Disk::Disk(std::uint64_t seed) : vfs_(fmt::format("bottle-{}", next_number++)), random_(seed) {
  auto* made = new sqlite3_vfs{};
  made->iVersion = 1;
  made->szOsFile = sizeof(OpenFile);
  made->mxPathname = 512;
  made->zName = vfs_.c_str();
  made->pAppData = this;
  made->xOpen = x_open;
  made->xDelete = x_delete;
  made->xAccess = x_access;
  made->xFullPathname = x_full_name;
  made->xRandomness = x_randomness;
  made->xSleep = x_sleep;
  made->xCurrentTime = x_time;
  made->xGetLastError = x_last_error;
  sqlite3_vfs_register(made, 0);
  registered_ = made;
}

Disk::~Disk() {
  auto* made = static_cast<sqlite3_vfs*>(registered_);
  sqlite3_vfs_unregister(made);
  delete made;
}

std::shared_ptr<Disk::File> Disk::open(const std::string& name) {
  auto& file = files_[name];
  if (!file) file = std::make_shared<File>();
  return file;
}

int Disk::begin() {
  if (stopped()) return SQLITE_IOERR;
  ++operations_;
  return stopped() ? SQLITE_IOERR : SQLITE_OK;
}

int Disk::write(File& file, std::size_t offset, std::string_view bytes) {
  if (begin() != SQLITE_OK) return SQLITE_IOERR_WRITE;
  const std::size_t size = file.content.size();
  if (full_ && offset + bytes.size() > size) {
    ++counts_.refused;
    return SQLITE_FULL;
  }
  file.changes.push_back({offset, bytes.size(), size, file.before.size(), false});
  if (offset < size) file.before.append(file.content, offset, bytes.size());
  put(file.content, offset, bytes);
  return SQLITE_OK;
}

int Disk::resize(File& file, std::size_t size) {
  if (begin() != SQLITE_OK) return SQLITE_IOERR_TRUNCATE;
  const std::size_t before = file.content.size();
  file.changes.push_back({size, 0, before, file.before.size(), true});
  if (size < before) file.before.append(file.content, size);
  file.content.resize(size);
  return SQLITE_OK;
}

int Disk::sync(File& file) {
  if (begin() != SQLITE_OK) return SQLITE_IOERR_FSYNC;
  if (std::exchange(fail_sync_, false)) {
    ++counts_.failed_syncs;
    return SQLITE_IOERR_FSYNC;
  }
  if (lies_) return SQLITE_OK;
  file.changes.clear();
  file.before.clear();
  return SQLITE_OK;
}

void Disk::fill_random(char* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<char>(random_.next());
}

/// Each sector of what was not synced reached the platter or did not, in whatever order.
void Disk::keep_some(File& file) {
  const std::vector<Change> changes = file.changes;
  std::vector<std::string> written(changes.size());
  for (std::size_t i = changes.size(); i-- > 0;) written[i] = undo(file);
  const std::uint64_t mood = random_.below(3);  // nearly nothing, anything, nearly everything
  const std::uint64_t percent = mood == 0 ? 5 : mood == 1 ? 50 : 95;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::size_t offset = changes[i].offset;
    if (changes[i].resize) {
      if (random_.chance(percent)) file.content.resize(offset);
      continue;
    }
    const std::string_view bytes = written[i];
    std::size_t kept = 0, lost = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = std::min(bytes.size(), at + kSector - (offset + at) % kSector);
      const bool reached = random_.chance(percent);
      if (reached) put(file.content, offset + at, bytes.substr(at, end - at));
      ++(reached ? kept : lost);
      at = end;
    }
    ++(lost == 0 ? counts_.kept : kept == 0 ? counts_.lost : counts_.torn);
  }
}

void Disk::lose_power() {
  for (auto& [name, file] : files_) keep_some(*file);
  lose_process();
}

void Disk::lose_process() {
  // Those that the dead process has open are its own from now on; nothing of it reads them again.
  for (auto& [name, file] : files_) {
    file = std::make_shared<File>(
        File{std::move(file->content), std::move(file->changes), std::move(file->before), {}});
  }
  stop_at_ = ~std::uint64_t{0};
}

}  // namespace muster::bottle

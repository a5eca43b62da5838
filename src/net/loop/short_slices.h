/// Threads that have little to do at a time and should not wait for it.
#pragma once

namespace muster::net {

/// Asks the kernel for short slices for the calling thread (Linux 6.12 and newer; others ignore
/// it). It gets no more of the processors than before, but when it wakes up it need not wait until
/// a busy thread's slice of some milliseconds ends.
void run_soon();

}  // namespace muster::net

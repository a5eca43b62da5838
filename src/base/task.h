/// Task<T>: what a coroutine returns. The one place outside net/ that names Asio.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace muster {

template <typename T>
using Task = boost::asio::awaitable<T>;

}  // namespace muster

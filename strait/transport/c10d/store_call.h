#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace strait {

namespace store {

/// Text as a value of a c10d::Store, and back.
inline std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
inline std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace store

/// What is waited for at the end is to take a small part of the timeout at most.
inline std::chrono::milliseconds limited(std::chrono::milliseconds usual, std::chrono::milliseconds timeout) {
  return std::min(usual, timeout / 10);
}

/// Of the patience with ranks that have not come: to say so. Goes through limited().
inline constexpr std::chrono::milliseconds kReserve(1000);

/// Runs `work` beside this thread and gives up on it after the limit: a store whose host has gone may never
/// answer, and nothing then ends the call. So `work` owns what it uses. Nothing too when `work` throws. Calls
/// `meanwhile` about every quarter of a second until then.
template <class Result>
std::optional<Result> within(
    std::chrono::milliseconds limit, std::function<Result()> work,
    const std::function<void()>& meanwhile = [] {}) {
  constexpr std::chrono::milliseconds kLook(250);
  const auto promise = std::make_shared<std::promise<Result>>();
  auto result = promise->get_future();
  std::thread([promise, work = std::move(work)] {
    try {
      promise->set_value(work());
    } catch (const std::exception&) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  const auto end = std::chrono::steady_clock::now() + limit;
  while (result.wait_until(std::min(end, std::chrono::steady_clock::now() + kLook)) !=
         std::future_status::ready) {
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    meanwhile();
  }
  try {
    return result.get();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace strait

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "strait/base/bytes.h"
#include "strait/transport/failure.h"

// What ranks tell each other besides data: JSON, as the bytes of a message.
namespace strait::tcp {

Buffer buffer_of(std::string_view text);

std::string text_of(const Buffer& buffer);

/// On one line; bytes that are no UTF-8 are replaced.
std::string text_of(const nlohmann::json& value);

/// Throws WireError for what is not JSON.
nlohmann::json parse(const std::string& text);

/// Of the reason no more than kMaxReason bytes.
std::string text_of(const Failure& failure);

/// The other way round, from what parse() gives. Throws WireError for a failure of none of so many ranks, and
/// nlohmann::json::exception for what is none.
Failure failure_in(const nlohmann::json& said, int ranks);

}  // namespace strait::tcp

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace strait {

/// The most that a file may have, and the most pixels that it may say it decodes to: a few kilobytes can
/// otherwise ask for all memory.
inline constexpr uint64_t kPictureBytesMost = uint64_t{64} << 20;
inline constexpr int64_t kPicturePixelsMost = int64_t{1} << 26;  ///< 201 MB decoded

/// A picture of height rows of width pixels, each a byte of red, green and blue.
struct Picture {
  int64_t height = 0;        ///< rows
  int64_t width = 0;         ///< pixels of a row
  std::vector<uint8_t> rgb;  ///< height * width * 3
};

/// Decodes a PNG or JPEG file, as its first bytes say, into what Pillow's convert("RGB") gives: grey stands in
/// all three channels, a palette's colours are looked up, transparency is left away, and gamma, colour profiles
/// and EXIF are not looked at. Of 16 bits the higher 8 are kept, where Pillow makes grey above 255 white. JPEG
/// is upsampled and transformed as libjpeg does by default.
///
/// `file` is for messages. Throws InputError that begins with it for another kind of file, one that is cut off
/// or damaged, a JPEG in CMYK, and more than `most_pixels` pixels, for which nothing is decoded.
Picture decode_picture(std::span<const std::byte> bytes, std::string_view file,
                       int64_t most_pixels = kPicturePixelsMost);

/// The same of a regular file of at most kPictureBytesMost.
Picture read_picture(const std::filesystem::path& path);

}  // namespace strait

#include "strait/data/picture.h"

#include <png.h>
#include <turbojpeg.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <string>

#include "strait/base/error.h"
#include "strait/base/files.h"

namespace strait {
namespace {

constexpr int64_t kRgb = 3;

/// The picture with room for its pixels.
Picture picture_of(int64_t height, int64_t width, std::string_view file, int64_t most_pixels) {
  if (height < 1 || width < 1 || height > most_pixels / width) {
    throw InputError("{}: has {} by {} pixels, expected 1 to {} of them", file, width, height, most_pixels);
  }
  return {height, width, std::vector<uint8_t>(static_cast<size_t>(height * width * kRgb))};
}

/// A PNG file in memory. libpng leaves a function by a jump where something is wrong: run() is where it
/// arrives, and between the two no object may wait for its destructor.
class PngFile {
 public:
  PngFile(std::span<const std::byte> bytes, std::string_view file) : left_(bytes), file_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &on_error, &on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw Error("{}: libpng has no memory", file);
    }
    png_set_read_fn(png_, this, &on_read);
  }
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  Picture decode(int64_t most_pixels) {
    run([](PngFile& file) { file.read_header(); });
    Picture picture =
        picture_of(png_get_image_height(png_, info_), png_get_image_width(png_, info_), file_, most_pixels);
    const auto row_bytes = static_cast<size_t>(picture.width * kRgb);
    if (png_get_rowbytes(png_, info_) != row_bytes)
      throw InputError("{}: its pixels are not as its header says", file_);
    for (int64_t y = 0; y < picture.height; ++y)
      rows_.push_back(picture.rgb.data() + static_cast<size_t>(y) * row_bytes);
    run([](PngFile& file) {
      png_read_image(file.png_, file.rows_.data());
      png_read_end(file.png_, nullptr);
    });
    return picture;
  }

 private:
  void run(void (*steps)(PngFile&)) {
    if (setjmp(png_jmpbuf(png_)) != 0) {  // NOLINT(cert-err52-cpp): libpng's own way
      throw InputError("{}: is not a sound PNG file: {}", file_, message_.data());
    }
    steps(*this);
  }

  /// Up to the pixels, which are then to be 8 bits of red, green and blue each.
  void read_header() {
    png_read_info(png_, info_);
    png_set_strip_16(png_);
    png_set_palette_to_rgb(png_);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  static void on_read(png_structp png, png_bytep out, size_t count) {
    auto& file = *static_cast<PngFile*>(png_get_io_ptr(png));
    if (count > file.left_.size()) png_error(png, "it ends too early");
    std::memcpy(out, file.left_.data(), count);
    file.left_ = file.left_.subspan(count);
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    auto& text = static_cast<PngFile*>(png_get_error_ptr(png))->message_;
    std::strncpy(text.data(), message, text.size() - 1);
    png_longjmp(png, 1);
  }

  static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

  std::span<const std::byte> left_;
  std::string_view file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
  std::array<char, 200> message_{};
};

Picture decode_jpeg(std::span<const std::byte> bytes, std::string_view file, int64_t most_pixels) {
  const std::unique_ptr<void, int (*)(tjhandle)> jpeg(tjInitDecompress(), &tjDestroy);
  if (jpeg == nullptr) throw Error("{}: libjpeg cannot be set up: {}", file, tjGetErrorStr2(nullptr));
  const auto check = [&](int result) {
    if (result != 0) throw InputError("{}: is not a sound JPEG file: {}", file, tjGetErrorStr2(jpeg.get()));
  };
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0;
  int height = 0;
  int sampling = 0;
  int colours = 0;
  check(tjDecompressHeader3(jpeg.get(), data, bytes.size(), &width, &height, &sampling, &colours));
  if (width < 1 || height < 1) throw InputError("{}: is not a sound JPEG file: its header has no size", file);
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
    throw InputError("{}: is a JPEG file in CMYK, expected RGB or grey", file);
  }
  Picture picture = picture_of(height, width, file, most_pixels);
  check(tjDecompress2(jpeg.get(), data, bytes.size(), picture.rgb.data(), width, 0, height, TJPF_RGB,
                      TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS));
  return picture;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() && std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

}  // namespace

Picture decode_picture(std::span<const std::byte> bytes, std::string_view file, int64_t most_pixels) {
  if (begins_with(bytes, "\x89PNG\r\n\x1a\n")) return PngFile(bytes, file).decode(most_pixels);
  if (begins_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, file, most_pixels);
  throw InputError("{}: is neither a PNG nor a JPEG file", file);
}

Picture read_picture(const std::filesystem::path& path) {
  const std::string content = read_whole(path, kPictureBytesMost);
  return decode_picture(std::as_bytes(std::span(content)), path.string());
}

}  // namespace strait

// codec_only SPEC...: sends a tensor through each codec and prints what that takes and what it loses.

#include <ATen/ops/arange.h>
#include <fmt/format.h>
#include <strait/codecs.h>

int main(int argc, char** argv) {
  const at::Tensor x =
      at::arange(4096).mul(7919).remainder(2003).sub(1001).to(at::kFloat).div(300).view({8, 512});
  try {
    for (int i = 1; i < argc; ++i) {
      const auto codec = strait::make_codec(argv[i]);
      const at::Tensor bytes = codec->encode(x);  // uint8, on x's device
      const at::Tensor back = codec->decode(bytes, strait::meta_of(x));
      const strait::ErrorStatistics error(x, back);
      fmt::print("{}: {} of {} bytes, relative error {:.6f}, largest error {:.6f}\n", codec->spec(),
                 bytes.numel(), x.nbytes(), error.relative_error(), error.max_abs_error());
    }
  } catch (const strait::Error& error) {
    fmt::print(stderr, "codec_only: {}\n", error.what());
    return 2;
  }
}

// Writes the seeds of frame_fuzz, codec_fuzz, link_fuzz, plan_fuzz, session_fuzz and introduction_fuzz. Run
// again when a codec is added:
//   build/make_corpus fuzz/corpus

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/codec_input.h"
#include "fuzz/link_input.h"
#include "strait/codecs/codec.h"
#include "strait/pipeline/schedules.h"
#include "strait/transport/tcp/message.h"

namespace {

using strait::fuzz::CodecInput;

void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw strait::Error("{}: cannot be written", path.string());
}

void write_frames(const std::filesystem::path& folder) {
  for (const size_t payload : {0U, 1U, 64U}) {
    std::vector<std::byte> frame(strait::kFrameHeaderSize + payload, std::byte{0x5a});
    strait::seal_frame(frame, {.codec = 3,
                               .link = 1,
                               .boundary = 2,
                               .direction = strait::Direction::gradient,
                               .micro_batch = 4,
                               .sequence = 1000,
                               .payload_size = 0});
    write(folder / fmt::format("payload_{}", payload), frame);
  }
}

void write_sessions(const std::filesystem::path& folder) {
  std::array<std::byte, strait::tcp::kHeaderSize> header{};
  strait::tcp::write_header(header, {.channel = {.tag = 3}, .size = 5, .received = 7});
  write(folder / "header", header);
  // Messages of several kinds, parts of what is sent, and connections that are lost: see session_fuzz.cpp.
  using std::string_view_literals::operator""sv;
  const auto acts = "\x05\x01\x08\0messages\x03\x02\x04\0text\x79\0\x10\0\x7c\0\x09\0\xe0\0\0\0\x79\0\xff\0"sv;
  write(folder / "acts", std::as_bytes(std::span(acts)));
}

void write_introductions(const std::filesystem::path& folder) {
  for (const std::string_view text : {R"({"rank":1})", ""}) {
    const auto size = static_cast<uint32_t>(text.size());
    std::string said = "strait-2";
    said.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
    write(folder / fmt::format("of_{}_bytes", size), std::as_bytes(std::span(said)));
  }
}

/// Two values in three are an irregular wave, the others zero, so that selecting codecs have a choice.
at::Tensor example(const CodecInput& input) {
  at::Tensor x = at::zeros(input.meta().shape);
  auto* values = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto t = static_cast<float>(i);
    values[i] = i % 3 == 0 ? 0 : std::sin(t) * std::cos(0.37F * t);
  }
  return x;
}

bool takes(std::string_view spec, const strait::MessageMeta& meta) {
  try {
    strait::make_codec(spec)->payload_size(meta);
    return true;
  } catch (const strait::InputError&) {
    return false;
  }
}

void write_codec_seed(const std::filesystem::path& folder, const CodecInput& input, std::string_view spec) {
  const auto codec = strait::make_codec(spec);
  std::vector<std::byte> seed(sizeof(input) + codec->payload_size(input.meta()).bound);
  strait::ByteWriter out(seed);
  out.put(input);
  codec->write(example(input), input.context(), out);
  seed.resize(out.used());
  std::string name(spec);
  for (char& c : name) {
    if (std::string_view(":,=/").find(c) != std::string_view::npos) c = '_';
  }
  write(folder / name, seed);
}

void write_codecs(const std::filesystem::path& folder) {
  for (const auto& info : strait::codec_list()) {
    for (size_t sample = 0; sample < info.samples.size(); ++sample) {
      CodecInput input{.codec = static_cast<uint8_t>(info.id),
                       .sample = static_cast<uint8_t>(sample),
                       .dimensions = {2, 3, 4, 5},
                       .direction = 0,
                       .seed = 1};
      if (!takes(info.samples[sample], input.meta())) input.dimensions[3] = CodecInput::kMaxWidth;
      write_codec_seed(folder, input, info.samples[sample]);
    }
  }
}

void write_links(const std::filesystem::path& folder) {
  for (uint8_t number = 0; number < strait::fuzz::LinkUnderTest::count(); ++number) {
    const CodecInput input{
        .codec = number, .sample = number, .dimensions = {4, 3, 4, 5}, .direction = 0, .seed = 1};
    strait::fuzz::LinkUnderTest link(input);
    std::vector<std::byte> seed(sizeof(input) + link.bound());
    strait::ByteWriter out(seed);
    out.put(input);
    link.encoder().encode(example(input), link.context(), out);
    seed.resize(out.used());
    write(folder / fmt::format("link_{}", number), seed);
  }
}

void write_plans(const std::filesystem::path& folder) {
  const auto save = [&](const std::string& name, const strait::Plan& plan) {
    const std::string text = strait::to_text(plan);
    write(folder / name, std::as_bytes(std::span(text)));
  };
  for (const auto& name : strait::schedule_names()) {
    const bool several = name == "interleaved";
    const auto plan = strait::lower(
        strait::make_schedule(name, several ? strait::ScheduleSize{4, 3, 2} : strait::ScheduleSize{3, 2}));
    save(name, plan);
    save(name + "_one_process", strait::one_process(plan));
  }
  save("forward_only", strait::lower(strait::forward_only(2, 2)));
  save("compute_only", strait::gpipe(2, 2));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: make_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  write_frames(folder / "frame");
  write_codecs(folder / "codec");
  write_links(folder / "link");
  write_plans(folder / "plan");
  write_sessions(folder / "session");
  write_introductions(folder / "introduction");
  return 0;
}

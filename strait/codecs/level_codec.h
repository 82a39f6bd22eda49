#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "strait/codecs/group_codec.h"
#include "strait/kernels/levels.h"

namespace strait {

/// A codec by which the receiver sees of every element of a group the value offset + scale * u, where u is what
/// the element's code stands for in a table of the codec's own. The group's header holds the scale, or the
/// offset and the scale. float32, one rounding after the other.
class LevelCodec : public GroupCodec {
 protected:
  /// What a group's header says.
  using Line = kernels::Line;

  /// The same of several groups, float32 [G, 1].
  struct Lines {
    at::Tensor offset;      ///< undefined: 0
    at::Tensor scale;       ///< 0 or more
    at::Tensor table = {};  ///< int64 [G, 1]; undefined: the first
  };

  /// What a group's header is: float32 numbers, a byte that says which table behind them, or a byte e for the
  /// scale 2^(e - 127).
  enum class Header { scale, offset_and_scale, offset_scale_and_table, exponent };

  /// Of each of up to 256 tables the first 2^bits entries count; NaN for codes that stand for nothing.
  LevelCodec(CodecIdentity identity, Scope scope, Header header, unsigned bits,
             const std::vector<kernels::CodeTable>& tables);

  /// What the codes stand for, a list a table.
  std::span<const kernels::CodeTable> tables() const { return tables_; }

  /// The same of each of several groups, float32 [G, 2^bits].
  at::Tensor units_of(const Lines& lines) const;

  /// Finds the lines of groups of `size` elements that follow each other, or of one of at least one element.
  /// One is not finite where an element is not.
  virtual void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const = 0;

  /// The same of several groups.
  virtual Lines lines_of(const TensorGroups& groups) const = 0;

  /// Calls line_of(group) for the line of each of such groups.
  template <class LineOf>
  static void find_each(std::span<const float> x, size_t size, std::span<Line> lines, const LineOf& line_of) {
    for (size_t i = 0; i < lines.size(); ++i) {
      lines[i] = line_of(x.subspan(i * size, std::min(size, x.size() - i * size)));
    }
  }

  /// Lines from the mean on in units of the root of the mean square about it.
  static Line mean_and_deviation(std::span<const float> x);

  /// The same of several groups.
  static Lines means_and_deviations(const TensorGroups& groups);

  /// Writes the codes of elements that are finite.
  virtual void write_codes(std::span<const float> x, const kernels::LineGroups& groups,
                           const kernels::Dither& dither, std::span<std::byte> out) const = 0;

  /// The same codes, int64 [G, n].
  virtual at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const = 0;

  void encode_groups(std::span<const float> x, size_t size, const kernels::Dither& dither, ByteWriter& headers,
                     std::span<std::byte> codes) const final;
  void decode_groups(ByteReader& headers, std::span<const std::byte> codes, size_t size,
                     std::span<float> out) const final;
  CodedGroups code_groups(const TensorGroups& groups) const final;
  at::Tensor values_of(const CodedGroups& groups) const final;

 private:
  /// The ends of a table.
  struct Ends {
    float least = 0;     ///< 0 or below
    float greatest = 0;  ///< 0 or above
  };

  static size_t header_size(Header header);
  bool is_sendable(const Line& line) const;
  bool are_sendable(const Lines& lines, const at::Tensor& units) const;
  at::Tensor headers_of(const Lines& lines) const;
  Lines lines_in(const at::Tensor& headers) const;
  void put_line(const Line& line, ByteWriter& out) const;
  Line read_line(ByteReader& in) const;
  [[noreturn]] static void reject();

  Header header_;
  std::vector<kernels::CodeTable> tables_;
  std::vector<Ends> ends_;  ///< of each
};

/// One whose groups' scale is their largest magnitude, and which has a single table.
class LargestScaleCodec : public LevelCodec {
 protected:
  /// As LevelCodec's.
  LargestScaleCodec(CodecIdentity identity, Scope scope, unsigned bits, const kernels::CodeTable& table);

  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const final;
  Lines lines_of(const TensorGroups& groups) const final;
};

/// The argument of a spec: bits of a code, from `least` to 8. Throws InputError.
unsigned bits_from(OperatorSpec& spec, unsigned least);

/// 2^(exponent - 127), 0 <= exponent <= 254; infinite for 255.
float power_of_two(uint32_t exponent);

/// values / scale, where a scale of 0 stands for 1.
at::Tensor over_scale(const at::Tensor& values, const at::Tensor& scale);

/// The table of signed levels (kernels/levels.h).
kernels::CodeTable signed_table(unsigned bits, const std::function<float(int level)>& value);

/// The same of levels at equal steps from -1 to 1.
kernels::CodeTable uniform_table(unsigned bits);

/// The magnitudes in steps of uniform_table(), not yet rounded, where the scale stands for 1.
at::Tensor in_uniform_steps(const TensorGroups& groups, const at::Tensor& scale, unsigned bits);

/// t rounded up where the element's random number is below t - floor(t), else down.
at::Tensor rounded_randomly(const at::Tensor& t, const TensorGroups& groups);

/// The codes of levels of these magnitudes with the elements' signs.
at::Tensor signed_codes(const at::Tensor& magnitudes, const TensorGroups& groups, unsigned bits);

}  // namespace strait

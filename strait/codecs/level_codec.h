#pragma once

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
  /// What the header says.
  struct Line {
    float offset = 0;   ///< what the code of 0 stands for
    float scale = 0;    ///< 0 or more
    uint8_t table = 0;  ///< which of the codec's tables the codes are of
  };

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

  /// What the codes of a table stand for.
  std::span<const float> units(uint8_t table = 0) const {
    return std::span(tables_[table].units).first(size_t{1} << bits());
  }

  /// The same of several groups, float32 [G, 2^bits].
  at::Tensor units_of(const Lines& lines) const;

  /// The line of a group of at least one element; it is not finite where an element is not.
  virtual Line line_of(std::span<const float> x) const = 0;

  /// The same of several groups.
  virtual Lines lines_of(const TensorGroups& groups) const = 0;

  /// Writes the codes of elements that are finite.
  virtual void write_codes(std::span<const float> x, const Line& line, const kernels::Dither& dither,
                           std::span<std::byte> out) const = 0;

  /// The same codes, int64 [G, n].
  virtual at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const = 0;

  void encode_group(std::span<const float> x, const kernels::Dither& dither, ByteWriter& header,
                    std::span<std::byte> codes) const final;
  void decode_group(ByteReader& header, std::span<const std::byte> codes, std::span<float> out) const final;
  at::Tensor reconstruct_groups(const TensorGroups& groups) const final;

 private:
  /// A table with its ends.
  struct Table {
    kernels::CodeTable units;  ///< what the codes stand for
    float least = 0;           ///< 0 or below
    float greatest = 0;        ///< 0 or above
  };

  static size_t header_size(Header header);
  bool is_sendable(const Line& line) const;
  Line read_line(ByteReader& in) const;
  [[noreturn]] static void reject();

  Header header_;
  std::vector<Table> tables_;
};

/// The argument of a spec: bits of a code, from `least` to 8. Throws InputError.
unsigned bits_from(OperatorSpec& spec, unsigned least);

/// 2^(exponent - 127), 0 <= exponent <= 254; infinite for 255.
float power_of_two(uint32_t exponent);

/// values / scale, where a scale of 0 stands for 1.
at::Tensor over_scale(const at::Tensor& values, const at::Tensor& scale);

/// The table of signed levels (kernels/levels.h).
kernels::CodeTable signed_table(unsigned bits, const std::function<float(int level)>& value);

/// t rounded up where the element's random number is below t - floor(t), else down.
at::Tensor rounded_randomly(const at::Tensor& t, const TensorGroups& groups);

/// The codes of levels of these magnitudes with the elements' signs.
at::Tensor signed_codes(const at::Tensor& magnitudes, const TensorGroups& groups, unsigned bits);

}  // namespace strait

// The wire format for Python: constants, the header's description, frames built and taken apart.
#include <pybind11/native_enum.h>
#include <pybind11/stl.h>

#include <span>
#include <string>
#include <vector>

#include "bindings/core.hpp"
#include "wire/frame.hpp"

namespace pycollective::bindings {
namespace {

// A parsed frame with its own copy of the lanes.
struct ParsedFrame {
  wire::Addresses addresses;
  wire::InaHeader header;
  py::bytes lanes;
};

std::span<const std::uint8_t> bytes_of(const py::bytes& bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw py::error_already_set();
  return {reinterpret_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size)};
}

py::bytes to_bytes(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

py::bytes build_frame(const wire::InaHeader& header, const std::string& source_mac,
                      const std::string& destination_mac, const std::string& source_ipv4,
                      const std::string& destination_ipv4, const py::bytes& lanes) {
  const auto lane_bytes = bytes_of(lanes);
  if (((header.flags & wire::flag::kData) != 0) == lane_bytes.empty()) {
    throw py::value_error("flag DATA must be set exactly when there are lanes");
  }
  if (lane_bytes.size() % wire::kLaneBytes != 0 ||
      lane_bytes.size() / wire::kLaneBytes > kMaxLanes) {
    throw py::value_error("lanes must be a whole number of 4 bytes, at most " +
                          std::to_string(kMaxLanes) + " times; found " +
                          std::to_string(lane_bytes.size()) + " bytes");
  }
  const std::size_t count = lane_bytes.size() / wire::kLaneBytes;
  const wire::FrameWriter writer({.source_mac = parse_mac(source_mac),
                                  .destination_mac = parse_mac(destination_mac),
                                  .source_ipv4 = parse_ipv4(source_ipv4),
                                  .destination_ipv4 = parse_ipv4(destination_ipv4)},
                                 count);
  std::vector<std::uint8_t> frame(wire::frame_bytes(count));
  std::copy(lane_bytes.begin(), lane_bytes.end(), frame.begin() + wire::kLanesOffset);
  writer.finish(header, frame);
  return to_bytes(frame);
}

ParsedFrame parse_frame(const py::bytes& bytes) {
  wire::Frame frame;
  const wire::FrameError error = wire::parse_frame(bytes_of(bytes), frame);
  if (error != wire::FrameError::kNone) throw py::value_error(std::string(wire::name(error)));
  return {frame.addresses, frame.header, to_bytes(frame.lanes)};
}

// The header's enumerations are plain numbers in Python: off the wire they may be anything.
template <auto Member>
int get_enumeration(const wire::InaHeader& header) {
  return static_cast<int>(header.*Member);
}
template <auto Member>
void set_enumeration(wire::InaHeader& header, std::uint8_t value) {
  using Value = std::remove_reference_t<decltype(header.*Member)>;
  header.*Member = static_cast<Value>(value);
}

template <auto Member>
void bind_enumeration(py::class_<wire::InaHeader>& type, const char* name) {
  type.def_property(name, &get_enumeration<Member>, &set_enumeration<Member>);
}

}  // namespace

void bind_wire(py::module_& module) {
  module.attr("INA_VERSION") = wire::kInaVersion;
  module.attr("INA_UDP_PORT") = wire::kInaUdpPort;
  module.attr("INA_HEADER_BYTES") = wire::kInaHeaderBytes;
  module.attr("LANE_BYTES") = wire::kLaneBytes;
  module.attr("MAX_WORLD_SIZE") = kMaxWorldSize;
  module.attr("NO_EXPONENT") = static_cast<int>(wire::kNoExponent);

  py::native_enum<wire::Opcode>(module, "Opcode", "enum.IntEnum")
      .value("CONTRIBUTE", wire::Opcode::kContribute)
      .value("RESULT", wire::Opcode::kResult)
      .value("STATUS", wire::Opcode::kStatus)
      .value("PROBE", wire::Opcode::kProbe)
      .value("PROBE_REPLY", wire::Opcode::kProbeReply)
      .value("NACK", wire::Opcode::kNack)
      .finalize();
  py::native_enum<wire::ReduceOp>(module, "ReduceOp", "enum.IntEnum")
      .value("SUM", wire::ReduceOp::kSum)
      .value("MIN", wire::ReduceOp::kMin)
      .value("MAX", wire::ReduceOp::kMax)
      .value("BAND", wire::ReduceOp::kBitAnd)
      .value("BOR", wire::ReduceOp::kBitOr)
      .value("BXOR", wire::ReduceOp::kBitXor)
      .value("COPY", wire::ReduceOp::kCopy)
      .finalize();
  py::native_enum<wire::ElementType>(module, "ElementType", "enum.IntEnum")
      .value("NONE", wire::ElementType::kNone)
      .value("INT32", wire::ElementType::kInt32)
      .value("BLOCK_FLOAT32", wire::ElementType::kBlockFloat32)
      .value("RAW_WORD", wire::ElementType::kRawWord)
      .value("SPECIAL_CODE", wire::ElementType::kSpecialCode)
      .finalize();
  enum class Flag : std::uint8_t {};
  py::native_enum<Flag>(module, "Flag", "enum.IntFlag")
      .value("RETRANSMIT", Flag{wire::flag::kRetransmit})
      .value("OVERFLOW", Flag{wire::flag::kOverflow})
      .value("SPECIAL", Flag{wire::flag::kSpecial})
      .value("ECN_ECHO", Flag{wire::flag::kEcnEcho})
      .value("DATA", Flag{wire::flag::kData})
      .value("MISMATCH", Flag{wire::flag::kMismatch})
      .finalize();
  py::native_enum<wire::NackReason>(module, "NackReason", "enum.IntEnum")
      .value("EPOCH", wire::NackReason::kEpoch)
      .value("SLOT", wire::NackReason::kSlot)
      .finalize();

  py::class_<wire::FieldDescription>(module, "FieldDescription")
      .def_property_readonly("name",
                             [](const wire::FieldDescription& f) { return std::string(f.name); })
      .def_readonly("bit_offset", &wire::FieldDescription::bit_offset)
      .def_readonly("width", &wire::FieldDescription::width)
      .def_readonly("signed", &wire::FieldDescription::is_signed);
  module.def("ina_fields", [] {
    return std::vector<wire::FieldDescription>(wire::kInaFields.begin(), wire::kInaFields.end());
  });

  py::class_<wire::InaHeader> header(module, "InaHeader");
  header.def(py::init([](const py::kwargs& fields) {
    py::object made = py::cast(wire::InaHeader{});
    for (const auto& [name, value] : fields) {
      if (!py::hasattr(made, name)) {
        throw py::type_error("the INA header has no field '" + py::str(name).cast<std::string>() +
                             "'");
      }
      py::setattr(made, name, value);
    }
    return made.cast<wire::InaHeader>();
  }));
  header.def_readwrite("version", &wire::InaHeader::version);
  bind_enumeration<&wire::InaHeader::opcode>(header, "opcode");
  bind_enumeration<&wire::InaHeader::reduce_op>(header, "reduce_op");
  bind_enumeration<&wire::InaHeader::element_type>(header, "element_type");
  header.def_readwrite("job", &wire::InaHeader::job)
      .def_readwrite("rank", &wire::InaHeader::rank)
      .def_readwrite("epoch", &wire::InaHeader::epoch)
      .def_property(
          "slot", [](const wire::InaHeader& h) { return h.slot; },
          [](wire::InaHeader& h, std::uint16_t slot) {
            if (slot >= wire::kMaxSlots) throw py::value_error("the field slot has 15 bits");
            h.slot = slot;
          })
      .def_property(
          "slot_version", [](const wire::InaHeader& h) { return h.slot_version; },
          [](wire::InaHeader& h, std::uint8_t version) {
            if (version > 1) throw py::value_error("the field slot_version is 0 or 1");
            h.slot_version = version;
          })
      .def_readwrite("sequence", &wire::InaHeader::sequence)
      .def_readwrite("chunk", &wire::InaHeader::chunk)
      .def_readwrite("lane_count", &wire::InaHeader::lane_count)
      .def_property(
          "exponent", [](const wire::InaHeader& h) { return static_cast<int>(h.exponent); },
          [](wire::InaHeader& h, int exponent) {
            if (exponent < -128 || exponent > 127) {
              throw py::value_error("the field exponent has 8 bits, signed");
            }
            h.exponent = static_cast<std::int8_t>(exponent);
          })
      .def_readwrite("flags", &wire::InaHeader::flags)
      .def_readwrite("fingerprint", &wire::InaHeader::fingerprint)
      .def("__eq__",
           [](const wire::InaHeader& a, const py::object& b) {
             return py::isinstance<wire::InaHeader>(b) && a == b.cast<wire::InaHeader>();
           })
      .def("__repr__", [](const py::object& self) {
        std::string text = "InaHeader(";
        for (const wire::FieldDescription& field : wire::kInaFields) {
          const std::string name(field.name);
          if (text.back() != '(') text += ", ";
          text += name + "=" + py::str(self.attr(name.c_str())).cast<std::string>();
        }
        return text + ")";
      });
  header.attr("__hash__") = py::none();

  py::class_<ParsedFrame>(module, "ParsedFrame")
      .def_readonly("header", &ParsedFrame::header)
      .def_readonly("lanes", &ParsedFrame::lanes)
      .def_property_readonly(
          "source_mac", [](const ParsedFrame& f) { return format_mac(f.addresses.source_mac); })
      .def_property_readonly(
          "destination_mac",
          [](const ParsedFrame& f) { return format_mac(f.addresses.destination_mac); })
      .def_property_readonly(
          "source_ipv4", [](const ParsedFrame& f) { return format_ipv4(f.addresses.source_ipv4); })
      .def_property_readonly("destination_ipv4", [](const ParsedFrame& f) {
        return format_ipv4(f.addresses.destination_ipv4);
      });
  module.def("build_frame", &build_frame, py::arg("header"), py::kw_only(), py::arg("source_mac"),
             py::arg("destination_mac"), py::arg("source_ipv4"), py::arg("destination_ipv4"),
             py::arg("lanes") = py::bytes());
  module.def("parse_frame", &parse_frame, py::arg("frame"));
}

}  // namespace pycollective::bindings

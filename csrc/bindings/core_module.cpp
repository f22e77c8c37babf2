// The extension module `pycollective._core`: the C++ core for Python. pycollective/_core.pyi is its
// documentation; the parts are core_wire, core_numeric, core_engine, core_connection and
// core_simulation.
#include "bindings/core.hpp"

PYBIND11_MODULE(_core, module) {
  using namespace pycollective::bindings;
  module.doc() = "The C++ core of pycollective; see _core.pyi.";
  bind_wire(module);
  bind_numeric(module);
  bind_engine(module);
  bind_connection(module);
  bind_simulation(module);
}

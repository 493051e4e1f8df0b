// This file is empty: that it is there lets the package declare functions without
// a body, which are linked to the runtime's.

package control

import "strconv"

// keep remembers how to revert a state, e.g. a hanging connection, under a name for that
// state.
func (t *TestServer) keep(name string, undo func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undos[name] = append(t.undos[name], undo)
}

// undo reverts the state kept under the name, and reports whether there was one.
func (t *TestServer) undo(name string) bool {
	t.mu.Lock()
	list := t.undos[name]
	delete(t.undos, name)
	t.mu.Unlock()
	for i := len(list) - 1; i >= 0; i-- {
		list[i]()
	}
	return len(list) > 0
}

// next returns a new id. The caller holds t.mu.
func (t *TestServer) next() string {
	t.last++
	return strconv.Itoa(t.last)
}

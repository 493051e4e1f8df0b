package server

import "github.com/zkgo/zkgo/proto"

// refusesForMemory reports whether a write that brings this is refused for lack of
// memory. It is called only while memory is full.
func (s *Server) refusesForMemory(req proto.Record, brings content) bool {
	if brings&growth == 0 {
		return false
	}
	if q, ok := req.(*proto.SetDataRequest); ok && !s.grows(q.Path, len(q.Data)) {
		return false
	}
	s.memory.Refused.Add(1)
	return true
}

// grows reports whether n bytes are more than the znode at path has.
func (s *Server) grows(path string, n int) bool {
	s.tree.RLock()
	defer s.tree.RUnlock()
	have := s.tree.Get(path)
	return have == nil || n > len(have.Data())
}

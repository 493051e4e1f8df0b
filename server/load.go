package server

// Load describes what a server has been doing, for code that tunes the process to it.
// The counts begin at the server's start, or at the last "srst".
type Load struct {
	Requests  int64 // requests read
	Entries   int64 // log entries applied
	Writes    int64 // writes in these entries
	Beside    int64 // entries proposed here while another was being written
	Snapshot  bool  // a snapshot is being written
	Alone     bool  // no ensemble: while an entry is written, no peer has to be told of it
	Returning bool  // a client that gets its reply sends the next write at once (raftfsm.Node.Gather)
}

// Load returns the current load. It takes no lock, so callers may call it often.
func (s *Server) Load() Load {
	numbers := s.node.Numbers()
	l := Load{Requests: s.stats.received.Load(), Beside: s.node.Beside(), Alone: !s.cfg.distributed(), Snapshot: numbers.Writing.Load() > 0, Returning: s.node.Returning()}
	l.Entries, l.Writes = numbers.Entries.Totals()
	return l
}

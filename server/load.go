package server

// Load is what a server has been doing, for who fits the process to it. The counts
// are since the start, or since "srst" was asked.
type Load struct {
	Requests  int64 // that have been read
	Entries   int64 // of the log that were applied
	Writes    int64 // in them
	Beside    int64 // entries that were proposed here while another was being written
	Snapshot  bool  // one is being written now
	Alone     bool  // it has no ensemble: while an entry is being written nobody else is to be told of it
	Returning bool  // who has been answered brings the next write at once (raftfsm.Node.Gather)
}

// Load may be asked at any time, and often: it takes no lock.
func (s *Server) Load() Load {
	numbers := s.node.Numbers()
	l := Load{Requests: s.stats.received.Load(), Beside: s.node.Beside(), Alone: !s.cfg.distributed(), Snapshot: numbers.Writing.Load() > 0, Returning: s.node.Returning()}
	l.Entries, l.Writes = numbers.Entries.Totals()
	return l
}

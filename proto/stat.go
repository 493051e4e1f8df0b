package proto

// Stat is a znode's metadata as clients see it. Times are milliseconds since
// the Unix epoch on the leader's clock.
type Stat struct {
	Czxid          int64 // zxid of the transaction that created the znode
	Mzxid          int64 // zxid of the last change of its data
	Ctime          int64
	Mtime          int64
	Version        int32 // changes of the data
	Cversion       int32 // changes of the children
	Aversion       int32 // changes of the ACL
	EphemeralOwner int64 // owning session; 0 unless the znode is ephemeral
	DataLength     int32
	NumChildren    int32
	Pzxid          int64 // zxid of the last change of the children
}

// Decode reads s.
func (s *Stat) Decode(r *Reader) {
	s.Czxid = r.Long()
	s.Mzxid = r.Long()
	s.Ctime = r.Long()
	s.Mtime = r.Long()
	s.Version = r.Int()
	s.Cversion = r.Int()
	s.Aversion = r.Int()
	s.EphemeralOwner = r.Long()
	s.DataLength = r.Int()
	s.NumChildren = r.Int()
	s.Pzxid = r.Long()
}

// Append appends s to b.
func (s *Stat) Append(b []byte) []byte {
	b = AppendLong(b, s.Czxid)
	b = AppendLong(b, s.Mzxid)
	b = AppendLong(b, s.Ctime)
	b = AppendLong(b, s.Mtime)
	b = AppendInt(b, s.Version)
	b = AppendInt(b, s.Cversion)
	b = AppendInt(b, s.Aversion)
	b = AppendLong(b, s.EphemeralOwner)
	b = AppendInt(b, s.DataLength)
	b = AppendInt(b, s.NumChildren)
	return AppendLong(b, s.Pzxid)
}

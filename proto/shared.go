package proto

// Several records of zookeeper.jute have the same fields. They share a type.

// PathRecord is a path.
type PathRecord struct {
	Path string
}

type (
	// CreateResponse answers create.
	CreateResponse = PathRecord
	// SyncRequest is the body of sync.
	SyncRequest = PathRecord
	// SyncResponse answers sync.
	SyncResponse = PathRecord
	// GetACLRequest is the body of getACL.
	GetACLRequest = PathRecord
	// GetAllChildrenNumberRequest is the body of getAllChildrenNumber.
	GetAllChildrenNumberRequest = PathRecord
)

// Decode reads p.
func (p *PathRecord) Decode(r *Reader) {
	p.Path = r.String()
}

// Append appends p to b.
func (p *PathRecord) Append(b []byte) []byte {
	return AppendString(b, p.Path)
}

// WatchRecord is a path and whether to set a watch there.
type WatchRecord struct {
	Path  string
	Watch bool
}

type (
	// ExistsRequest is the body of exists.
	ExistsRequest = WatchRecord
	// GetDataRequest is the body of getData.
	GetDataRequest = WatchRecord
	// GetChildrenRequest is the body of getChildren and getChildren2.
	GetChildrenRequest = WatchRecord
)

// Decode reads w.
func (w *WatchRecord) Decode(r *Reader) {
	w.Path = r.String()
	w.Watch = r.Bool()
}

// Append appends w to b.
func (w *WatchRecord) Append(b []byte) []byte {
	b = AppendString(b, w.Path)
	return AppendBool(b, w.Watch)
}

// VersionRecord is a path and the version that the znode there must have.
type VersionRecord struct {
	Path    string
	Version int32 // −1 for any
}

type (
	// DeleteRequest is the body of delete.
	DeleteRequest = VersionRecord
	// CheckVersionRequest is the body of check, which is valid only inside a multi.
	CheckVersionRequest = VersionRecord
)

// Decode reads v.
func (v *VersionRecord) Decode(r *Reader) {
	v.Path = r.String()
	v.Version = r.Int()
}

// Append appends v to b.
func (v *VersionRecord) Append(b []byte) []byte {
	b = AppendString(b, v.Path)
	return AppendInt(b, v.Version)
}

// StatRecord is a znode's metadata.
type StatRecord struct {
	Stat Stat
}

type (
	// ExistsResponse answers exists.
	ExistsResponse = StatRecord
	// SetDataResponse answers setData.
	SetDataResponse = StatRecord
	// SetACLResponse answers setACL.
	SetACLResponse = StatRecord
)

// Decode reads s.
func (s *StatRecord) Decode(r *Reader) {
	s.Stat.Decode(r)
}

// Append appends s to b.
func (s *StatRecord) Append(b []byte) []byte {
	return s.Stat.Append(b)
}

// PathOf returns the path of the znode that a request is for, or false if the request
// isn't for one znode.
func PathOf(req Record) (path string, ok bool) {
	if q, ok := req.(interface{ target() string }); ok {
		return q.target(), true
	}
	return "", false
}

// Path is PathOf the operation's request.
func (m *MultiOp) Path() (string, bool) { return PathOf(m.Req) }

func (c *CreateRequest) target() string       { return c.Path }
func (c *CreateTTLRequest) target() string    { return c.Path }
func (s *SetDataRequest) target() string      { return s.Path }
func (s *SetACLRequest) target() string       { return s.Path }
func (a *AddWatchRequest) target() string     { return a.Path }
func (c *CheckWatchesRequest) target() string { return c.Path }
func (p *PathRecord) target() string          { return p.Path }
func (w *WatchRecord) target() string         { return w.Path }
func (v *VersionRecord) target() string       { return v.Path }

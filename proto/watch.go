package proto

// EventType is the kind of change of a znode.
type EventType int32

// The event types that a server sends.
const (
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4
)

// StateSyncConnected is the only state that a server sends in a notification.
const StateSyncConnected int32 = 3

// AddWatchMode is the mode of addWatch.
type AddWatchMode int32

// The modes of addWatch.
const (
	AddWatchPersistent          AddWatchMode = 0
	AddWatchPersistentRecursive AddWatchMode = 1
)

// WatcherType selects watches for checkWatches and removeWatches.
type WatcherType int32

// The watcher types; 4 and 5 exist from ZooKeeper 3.9 on.
const (
	WatcherChildren            WatcherType = 1
	WatcherData                WatcherType = 2
	WatcherAny                 WatcherType = 3
	WatcherPersistent          WatcherType = 4
	WatcherPersistentRecursive WatcherType = 5
)

// WatcherEvent is the body of a notification.
type WatcherEvent struct {
	Type  int32 // an EventType
	State int32 // always StateSyncConnected from a server
	Path  string
}

// Decode reads w.
func (w *WatcherEvent) Decode(r *Reader) {
	w.Type = r.Int()
	w.State = r.Int()
	w.Path = r.String()
}

// Append appends w to b.
func (w *WatcherEvent) Append(b []byte) []byte {
	b = AppendInt(b, w.Type)
	b = AppendInt(b, w.State)
	return AppendString(b, w.Path)
}

// SetWatches is the body of setWatches: the watches that a client had before it
// reconnected, and the last zxid it saw.
type SetWatches struct {
	RelativeZxid int64
	Data         []string
	Exist        []string
	Child        []string
}

// Decode reads s.
func (s *SetWatches) Decode(r *Reader) {
	s.RelativeZxid = r.Long()
	s.Data = r.Strings()
	s.Exist = r.Strings()
	s.Child = r.Strings()
}

// Append appends s to b.
func (s *SetWatches) Append(b []byte) []byte {
	b = AppendLong(b, s.RelativeZxid)
	b = AppendStrings(b, s.Data)
	b = AppendStrings(b, s.Exist)
	return AppendStrings(b, s.Child)
}

// SetWatches2 is the body of setWatches2.
type SetWatches2 struct {
	RelativeZxid        int64
	Data                []string
	Exist               []string
	Child               []string
	Persistent          []string
	PersistentRecursive []string
}

// Decode reads s.
func (s *SetWatches2) Decode(r *Reader) {
	s.RelativeZxid = r.Long()
	s.Data = r.Strings()
	s.Exist = r.Strings()
	s.Child = r.Strings()
	s.Persistent = r.Strings()
	s.PersistentRecursive = r.Strings()
}

// Append appends s to b.
func (s *SetWatches2) Append(b []byte) []byte {
	b = AppendLong(b, s.RelativeZxid)
	b = AppendStrings(b, s.Data)
	b = AppendStrings(b, s.Exist)
	b = AppendStrings(b, s.Child)
	b = AppendStrings(b, s.Persistent)
	return AppendStrings(b, s.PersistentRecursive)
}

// AddWatchRequest is the body of addWatch.
type AddWatchRequest struct {
	Path string
	Mode int32 // an AddWatchMode
}

// Decode reads a.
func (a *AddWatchRequest) Decode(r *Reader) {
	a.Path = r.String()
	a.Mode = r.Int()
}

// Append appends a to b.
func (a *AddWatchRequest) Append(b []byte) []byte {
	b = AppendString(b, a.Path)
	return AppendInt(b, a.Mode)
}

// ErrorResponse is the body of the reply to addWatch and of an error entry in a
// multi: just a code.
type ErrorResponse struct {
	Err int32
}

// Decode reads e.
func (e *ErrorResponse) Decode(r *Reader) {
	e.Err = r.Int()
}

// Append appends e to b.
func (e *ErrorResponse) Append(b []byte) []byte {
	return AppendInt(b, e.Err)
}

// CheckWatchesRequest is the body of checkWatches and removeWatches.
type CheckWatchesRequest struct {
	Path string
	Type int32 // a WatcherType
}

// Decode reads c.
func (c *CheckWatchesRequest) Decode(r *Reader) {
	c.Path = r.String()
	c.Type = r.Int()
}

// Append appends c to b.
func (c *CheckWatchesRequest) Append(b []byte) []byte {
	b = AppendString(b, c.Path)
	return AppendInt(b, c.Type)
}

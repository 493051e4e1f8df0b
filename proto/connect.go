package proto

// ConnectRequest opens a connection. TimeOut is in milliseconds. HasReadOnly reports
// whether the client sent the trailing readOnly byte. ZooKeeper 3.3 clients and some
// third-party clients don't, and we must omit it in the response to them too.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	TimeOut         int32
	SessionID       int64
	Passwd          []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Decode reads c.
func (c *ConnectRequest) Decode(r *Reader) {
	c.ProtocolVersion = r.Int()
	c.LastZxidSeen = r.Long()
	c.TimeOut = r.Int()
	c.SessionID = r.Long()
	c.Passwd = r.Buffer()
	c.HasReadOnly = r.err == nil && r.Len() > 0
	c.ReadOnly = c.HasReadOnly && r.Bool()
}

// Append appends c to b.
func (c *ConnectRequest) Append(b []byte) []byte {
	b = AppendInt(b, c.ProtocolVersion)
	b = AppendLong(b, c.LastZxidSeen)
	b = AppendInt(b, c.TimeOut)
	b = AppendLong(b, c.SessionID)
	b = AppendBuffer(b, c.Passwd)
	if c.HasReadOnly {
		b = AppendBool(b, c.ReadOnly)
	}
	return b
}

// ConnectResponse answers a ConnectRequest. A TimeOut of 0 means that the
// session has expired.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeOut         int32
	SessionID       int64
	Passwd          []byte
	ReadOnly        bool
	HasReadOnly     bool
}

// Decode reads c.
func (c *ConnectResponse) Decode(r *Reader) {
	c.ProtocolVersion = r.Int()
	c.TimeOut = r.Int()
	c.SessionID = r.Long()
	c.Passwd = r.Buffer()
	c.HasReadOnly = r.err == nil && r.Len() > 0
	c.ReadOnly = c.HasReadOnly && r.Bool()
}

// Append appends c to b.
func (c *ConnectResponse) Append(b []byte) []byte {
	b = AppendInt(b, c.ProtocolVersion)
	b = AppendInt(b, c.TimeOut)
	b = AppendLong(b, c.SessionID)
	b = AppendBuffer(b, c.Passwd)
	if c.HasReadOnly {
		b = AppendBool(b, c.ReadOnly)
	}
	return b
}

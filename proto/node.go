package proto

// CreateRequest is the body of create, create2 and createContainer.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32 // a CreateMode
}

// Decode reads c.
func (c *CreateRequest) Decode(r *Reader) {
	c.Path = r.String()
	c.Data = r.Buffer()
	c.ACL = r.ACLs()
	c.Flags = r.Int()
}

// Append appends c to b.
func (c *CreateRequest) Append(b []byte) []byte {
	b = AppendString(b, c.Path)
	b = AppendBuffer(b, c.Data)
	b = AppendACLs(b, c.ACL)
	return AppendInt(b, c.Flags)
}

// CreateTTLRequest is the body of createTTL.
type CreateTTLRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32 // a CreateMode
	TTL   int64 // milliseconds
}

// Decode reads c.
func (c *CreateTTLRequest) Decode(r *Reader) {
	c.Path = r.String()
	c.Data = r.Buffer()
	c.ACL = r.ACLs()
	c.Flags = r.Int()
	c.TTL = r.Long()
}

// Append appends c to b.
func (c *CreateTTLRequest) Append(b []byte) []byte {
	b = AppendString(b, c.Path)
	b = AppendBuffer(b, c.Data)
	b = AppendACLs(b, c.ACL)
	b = AppendInt(b, c.Flags)
	return AppendLong(b, c.TTL)
}

// Create2Response answers create2, createContainer and createTTL.
type Create2Response struct {
	Path string
	Stat Stat
}

// Decode reads c.
func (c *Create2Response) Decode(r *Reader) {
	c.Path = r.String()
	c.Stat.Decode(r)
}

// Append appends c to b.
func (c *Create2Response) Append(b []byte) []byte {
	b = AppendString(b, c.Path)
	return c.Stat.Append(b)
}

// GetDataResponse answers getData.
type GetDataResponse struct {
	Data []byte
	Stat Stat
}

// Decode reads g.
func (g *GetDataResponse) Decode(r *Reader) {
	g.Data = r.Buffer()
	g.Stat.Decode(r)
}

// Append appends g to b.
func (g *GetDataResponse) Append(b []byte) []byte {
	b = AppendBuffer(b, g.Data)
	return g.Stat.Append(b)
}

// SetDataRequest is the body of setData.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32 // expected version, −1 for any
}

// Decode reads s.
func (s *SetDataRequest) Decode(r *Reader) {
	s.Path = r.String()
	s.Data = r.Buffer()
	s.Version = r.Int()
}

// Append appends s to b.
func (s *SetDataRequest) Append(b []byte) []byte {
	b = AppendString(b, s.Path)
	b = AppendBuffer(b, s.Data)
	return AppendInt(b, s.Version)
}

// GetACLResponse answers getACL.
type GetACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Decode reads g.
func (g *GetACLResponse) Decode(r *Reader) {
	g.ACL = r.ACLs()
	g.Stat.Decode(r)
}

// Append appends g to b.
func (g *GetACLResponse) Append(b []byte) []byte {
	b = AppendACLs(b, g.ACL)
	return g.Stat.Append(b)
}

// SetACLRequest is the body of setACL.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32 // expected aversion, −1 for any
}

// Decode reads s.
func (s *SetACLRequest) Decode(r *Reader) {
	s.Path = r.String()
	s.ACL = r.ACLs()
	s.Version = r.Int()
}

// Append appends s to b.
func (s *SetACLRequest) Append(b []byte) []byte {
	b = AppendString(b, s.Path)
	b = AppendACLs(b, s.ACL)
	return AppendInt(b, s.Version)
}

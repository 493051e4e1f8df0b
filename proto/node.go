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

// CreateResponse answers create.
type CreateResponse struct {
	Path string
}

// Decode reads c.
func (c *CreateResponse) Decode(r *Reader) {
	c.Path = r.String()
}

// Append appends c to b.
func (c *CreateResponse) Append(b []byte) []byte {
	return AppendString(b, c.Path)
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

// DeleteRequest is the body of delete.
type DeleteRequest struct {
	Path    string
	Version int32 // expected version, −1 for any
}

// Decode reads d.
func (d *DeleteRequest) Decode(r *Reader) {
	d.Path = r.String()
	d.Version = r.Int()
}

// Append appends d to b.
func (d *DeleteRequest) Append(b []byte) []byte {
	b = AppendString(b, d.Path)
	return AppendInt(b, d.Version)
}

// ExistsRequest is the body of exists.
type ExistsRequest struct {
	Path  string
	Watch bool
}

// Decode reads e.
func (e *ExistsRequest) Decode(r *Reader) {
	e.Path = r.String()
	e.Watch = r.Bool()
}

// Append appends e to b.
func (e *ExistsRequest) Append(b []byte) []byte {
	b = AppendString(b, e.Path)
	return AppendBool(b, e.Watch)
}

// ExistsResponse answers exists.
type ExistsResponse struct {
	Stat Stat
}

// Decode reads e.
func (e *ExistsResponse) Decode(r *Reader) {
	e.Stat.Decode(r)
}

// Append appends e to b.
func (e *ExistsResponse) Append(b []byte) []byte {
	return e.Stat.Append(b)
}

// GetDataRequest is the body of getData.
type GetDataRequest struct {
	Path  string
	Watch bool
}

// Decode reads g.
func (g *GetDataRequest) Decode(r *Reader) {
	g.Path = r.String()
	g.Watch = r.Bool()
}

// Append appends g to b.
func (g *GetDataRequest) Append(b []byte) []byte {
	b = AppendString(b, g.Path)
	return AppendBool(b, g.Watch)
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

// SetDataResponse answers setData.
type SetDataResponse struct {
	Stat Stat
}

// Decode reads s.
func (s *SetDataResponse) Decode(r *Reader) {
	s.Stat.Decode(r)
}

// Append appends s to b.
func (s *SetDataResponse) Append(b []byte) []byte {
	return s.Stat.Append(b)
}

// CheckVersionRequest is the body of check, which is valid only inside a multi.
type CheckVersionRequest struct {
	Path    string
	Version int32
}

// Decode reads c.
func (c *CheckVersionRequest) Decode(r *Reader) {
	c.Path = r.String()
	c.Version = r.Int()
}

// Append appends c to b.
func (c *CheckVersionRequest) Append(b []byte) []byte {
	b = AppendString(b, c.Path)
	return AppendInt(b, c.Version)
}

// SyncRequest is the body of sync.
type SyncRequest struct {
	Path string
}

// Decode reads s.
func (s *SyncRequest) Decode(r *Reader) {
	s.Path = r.String()
}

// Append appends s to b.
func (s *SyncRequest) Append(b []byte) []byte {
	return AppendString(b, s.Path)
}

// SyncResponse answers sync.
type SyncResponse struct {
	Path string
}

// Decode reads s.
func (s *SyncResponse) Decode(r *Reader) {
	s.Path = r.String()
}

// Append appends s to b.
func (s *SyncResponse) Append(b []byte) []byte {
	return AppendString(b, s.Path)
}

// GetACLRequest is the body of getACL.
type GetACLRequest struct {
	Path string
}

// Decode reads g.
func (g *GetACLRequest) Decode(r *Reader) {
	g.Path = r.String()
}

// Append appends g to b.
func (g *GetACLRequest) Append(b []byte) []byte {
	return AppendString(b, g.Path)
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

// SetACLResponse answers setACL.
type SetACLResponse struct {
	Stat Stat
}

// Decode reads s.
func (s *SetACLResponse) Decode(r *Reader) {
	s.Stat.Decode(r)
}

// Append appends s to b.
func (s *SetACLResponse) Append(b []byte) []byte {
	return s.Stat.Append(b)
}

package proto

// GetChildrenResponse answers getChildren.
type GetChildrenResponse struct {
	Children []string
}

// Decode reads g.
func (g *GetChildrenResponse) Decode(r *Reader) {
	g.Children = r.Strings()
}

// Append appends g to b.
func (g *GetChildrenResponse) Append(b []byte) []byte {
	return AppendStrings(b, g.Children)
}

// GetChildren2Response answers getChildren2.
type GetChildren2Response struct {
	Children []string
	Stat     Stat
}

// Decode reads g.
func (g *GetChildren2Response) Decode(r *Reader) {
	g.Children = r.Strings()
	g.Stat.Decode(r)
}

// Append appends g to b.
func (g *GetChildren2Response) Append(b []byte) []byte {
	b = AppendStrings(b, g.Children)
	return g.Stat.Append(b)
}

// GetEphemeralsRequest is the body of getEphemerals.
type GetEphemeralsRequest struct {
	Prefix string
}

// Decode reads g.
func (g *GetEphemeralsRequest) Decode(r *Reader) {
	g.Prefix = r.String()
}

// Append appends g to b.
func (g *GetEphemeralsRequest) Append(b []byte) []byte {
	return AppendString(b, g.Prefix)
}

// GetEphemeralsResponse answers getEphemerals.
type GetEphemeralsResponse struct {
	Ephemerals []string
}

// Decode reads g.
func (g *GetEphemeralsResponse) Decode(r *Reader) {
	g.Ephemerals = r.Strings()
}

// Append appends g to b.
func (g *GetEphemeralsResponse) Append(b []byte) []byte {
	return AppendStrings(b, g.Ephemerals)
}

// GetAllChildrenNumberResponse answers getAllChildrenNumber.
type GetAllChildrenNumberResponse struct {
	Total int32
}

// Decode reads g.
func (g *GetAllChildrenNumberResponse) Decode(r *Reader) {
	g.Total = r.Int()
}

// Append appends g to b.
func (g *GetAllChildrenNumberResponse) Append(b []byte) []byte {
	return AppendInt(b, g.Total)
}

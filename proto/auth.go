package proto

// AuthPacket is the body of auth.
type AuthPacket struct {
	Type   int32 // always 0
	Scheme string
	Auth   []byte
}

// Decode reads a.
func (a *AuthPacket) Decode(r *Reader) {
	a.Type = r.Int()
	a.Scheme = r.String()
	a.Auth = r.Buffer()
}

// Append appends a to b.
func (a *AuthPacket) Append(b []byte) []byte {
	b = AppendInt(b, a.Type)
	b = AppendString(b, a.Scheme)
	return AppendBuffer(b, a.Auth)
}

// SASLResponse answers sasl.
type SASLResponse = SASLRequest

// SASLRequest is the body of sasl.
type SASLRequest struct {
	Token []byte
}

// Decode reads s.
func (s *SASLRequest) Decode(r *Reader) {
	s.Token = r.Buffer()
}

// Append appends s to b.
func (s *SASLRequest) Append(b []byte) []byte {
	return AppendBuffer(b, s.Token)
}

// ReconfigRequest is the body of reconfig. Joining and Leaving change the
// membership, NewMembers replaces it; unused fields are null.
type ReconfigRequest struct {
	Joining     string
	Leaving     string
	NewMembers  string
	CurConfigID int64 // expected version, −1 for any
}

// Decode reads q.
func (q *ReconfigRequest) Decode(r *Reader) {
	q.Joining = r.String()
	q.Leaving = r.String()
	q.NewMembers = r.String()
	q.CurConfigID = r.Long()
}

// Append appends q to b.
func (q *ReconfigRequest) Append(b []byte) []byte {
	b = AppendString(b, q.Joining)
	b = AppendString(b, q.Leaving)
	b = AppendString(b, q.NewMembers)
	return AppendLong(b, q.CurConfigID)
}

// WhoAmIResponse answers whoAmI with the connection's identities, without secrets.
type WhoAmIResponse struct {
	IDs []ID // nil is null
}

// Decode reads w.
func (w *WhoAmIResponse) Decode(r *Reader) {
	w.IDs = nil
	n := r.Count(8)
	if n < 0 {
		return
	}
	w.IDs = make([]ID, n)
	for i := range w.IDs {
		w.IDs[i].Scheme = r.String()
		w.IDs[i].ID = r.String()
	}
}

// Append appends w to b.
func (w *WhoAmIResponse) Append(b []byte) []byte {
	if w.IDs == nil {
		return AppendInt(b, -1)
	}
	b = AppendInt(b, int32(len(w.IDs)))
	for _, id := range w.IDs {
		b = AppendString(b, id.Scheme)
		b = AppendString(b, id.ID)
	}
	return b
}

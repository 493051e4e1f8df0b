package proto

import "slices"

// Perms is a set of permissions. ZooKeeper stores any 32 bits unchecked.
type Perms int32

// The permissions.
const (
	PermRead   Perms = 1
	PermWrite  Perms = 2
	PermCreate Perms = 4
	PermDelete Perms = 8
	PermAdmin  Perms = 16
	PermAll    Perms = 31
)

// ID is an identity under an authentication scheme. A null scheme or id from
// the wire is [NullString].
type ID struct {
	Scheme string
	ID     string
}

// ACL grants permissions to an identity.
type ACL struct {
	Perms Perms
	ID    ID
}

// aclMin is the minimum size of an encoded ACL in bytes.
const aclMin = 12

// Decode reads a.
func (a *ACL) Decode(r *Reader) {
	a.Perms = Perms(r.Int())
	a.ID.Scheme = r.String()
	a.ID.ID = r.String()
}

// Append appends a to b.
func (a *ACL) Append(b []byte) []byte {
	b = AppendInt(b, int32(a.Perms))
	b = AppendString(b, a.ID.Scheme)
	return AppendString(b, a.ID.ID)
}

// ACLs reads a vector of ACLs; null is nil, empty is not.
func (r *Reader) ACLs() []ACL {
	n := r.Count(aclMin)
	if n < 0 {
		return nil
	}
	v := r.newACLs(n)
	for i := range v {
		v[i].Decode(r)
	}
	return v
}

// newACLs returns memory for a list: either newly allocated or the end of the slice that
// the reader's owner reuses.
func (r *Reader) newACLs(n int) []ACL {
	if r.acls == nil || n == 0 {
		return make([]ACL, n)
	}
	at := len(*r.acls)
	*r.acls = slices.Grow(*r.acls, n)[:at+n]
	return (*r.acls)[at : at+n : at+n]
}

// AppendACLs appends a vector of ACLs; nil is null.
func AppendACLs(b []byte, v []ACL) []byte {
	if v == nil {
		return AppendInt(b, -1)
	}
	b = AppendInt(b, int32(len(v)))
	for i := range v {
		b = v[i].Append(b)
	}
	return b
}

// OpenACL returns the list that grants all permissions to any client.
func OpenACL() []ACL { return []ACL{{PermAll, ID{"world", "anyone"}}} }

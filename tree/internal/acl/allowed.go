package acl

import "github.com/zkgo/zkgo/proto"

// Allowed reports whether a client with these identities has one of perms under
// list. An empty list allows everything, and so does an identity of scheme super.
func Allowed(list []proto.ACL, perms proto.Perms, ids []proto.ID) bool {
	if len(list) == 0 {
		return true
	}
	for i := range ids {
		if ids[i].Scheme == "super" {
			return true
		}
	}
	if len(ids)*len(list) > maxPairs {
		return allowedOfMany(list, perms, ids)
	}
	for i := range list {
		if list[i].Perms&perms != 0 && matches(&list[i].ID, ids) {
			return true
		}
	}
	return false
}

// maxPairs is the number of pairs of an identity and an ACL entry up to which Allowed
// compares each pair. A request can carry a list of 80,000 entries.
const maxPairs = 4096

// allowedOfMany finishes Allowed in linear time. It compares only addresses with every
// entry of their scheme; a client has one address.
func allowedOfMany(list []proto.ACL, perms proto.Perms, ids []proto.ID) bool {
	var addresses []proto.ID
	have := make(map[proto.ID]struct{}, len(ids))
	for _, id := range ids {
		if id.Scheme == "ip" {
			addresses = append(addresses, id)
			continue
		}
		have[id] = struct{}{}
	}
	for i := range list {
		if list[i].Perms&perms == 0 {
			continue
		}
		if _, ok := have[list[i].ID]; ok || matches(&list[i].ID, addresses) {
			return true
		}
	}
	return false
}

// matches reports whether ids contain the identity id of an ACL entry.
func matches(id *proto.ID, ids []proto.ID) bool {
	if id.Scheme == "world" && id.ID == "anyone" {
		return true
	}
	for i := range ids {
		if ids[i].Scheme != id.Scheme {
			continue
		}
		if ids[i].ID == id.ID && id.Scheme != "ip" || id.Scheme == "ip" && ipMatches(ids[i].ID, id.ID) {
			return true
		}
	}
	return false
}

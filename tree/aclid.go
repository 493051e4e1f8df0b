package tree

import (
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/acl"
)

// validID checks the identity in one entry of a list that a client sent. We reject a null
// id only where ZooKeeper looks at it.
func validID(id *proto.ID, p Policy) proto.Code {
	var valid func(id string) bool
	switch id.Scheme {
	case "auth":
		return proto.Ok
	case "world":
		valid = func(id string) bool { return id == "anyone" }
	case "digest":
		valid = validDigest
	case "ip":
		valid = acl.ValidIP
	case "x509":
		if p&SchemeX509 != 0 {
			valid = validX500
		}
	case "sasl":
		if p&SchemeSASL != 0 {
			valid = validKerberos
		}
	default:
		if p&SchemeOthers != 0 && otherScheme(id.Scheme) {
			nameless := id.Scheme == "key" // KeyAuthenticationProvider: its clients have no names
			valid = func(id string) bool { return id != "" || nameless }
		}
	}
	switch {
	case valid == nil:
		return proto.ErrInvalidACL
	case id.ID == proto.NullString:
		return proto.ErrMarshalling
	case !valid(id.ID):
		return proto.ErrInvalidACL
	}
	return proto.Ok
}

// otherScheme reports whether scheme has no built-in meaning and contains no colon, so that
// we can name it in colon-separated text.
func otherScheme(scheme string) bool {
	switch scheme {
	case "", proto.NullString, "auth", "world", "digest", "ip", "x509", "sasl", "super", "ensemble":
		return false
	}
	return !strings.Contains(scheme, ":")
}

// validDigest reports whether id is user:secret; trailing colons don't count.
func validDigest(id string) bool {
	return strings.Count(strings.TrimRight(id, ":"), ":") == 1
}

// validKerberos reports whether id is a Kerberos principal, name[/host]@realm,
// or has no realm at all.
func validKerberos(id string) bool {
	name, realm, found := strings.Cut(id, "@")
	if !found {
		return true
	}
	return !strings.ContainsAny(realm, "/@") && strings.Count(name, "/") <= 1
}

// validX500 reports whether id has the form of a distinguished name: attributes
// with known keywords or object identifiers, separated by commas, semicolons or
// plus signs.
func validX500(id string) bool {
	// We trim once here, not for every attribute, so that the loop stays linear in the
	// length of id.
	for rest := strings.TrimSpace(id); rest != ""; {
		attribute, more := cutAttribute(rest)
		keyword, _, found := strings.Cut(attribute, "=")
		if !found || !x500Keyword(strings.ToUpper(strings.TrimSpace(keyword))) {
			return false
		}
		if more == "" {
			return true
		}
		if rest = more[1:]; rest == "" {
			return false
		}
	}
	return true
}

// cutAttribute returns the part of a name before its first separator that is
// neither quoted nor escaped, and the rest, starting with the separator.
func cutAttribute(s string) (attribute, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ',', ';', '+':
			if !quoted {
				return s[:i], s[i:]
			}
		}
	}
	return s, ""
}

// x500Keyword reports whether Java knows the keyword of an attribute.
func x500Keyword(k string) bool {
	switch k {
	case "CN", "C", "L", "S", "ST", "O", "OU", "T", "IP", "STREET", "DC", "DNQUALIFIER", "DNQ", "SURNAME",
		"GIVENNAME", "INITIALS", "GENERATION", "EMAIL", "EMAILADDRESS", "UID", "SERIALNUMBER":
		return true
	}
	k = strings.TrimPrefix(k, "OID.")
	return len(k) > 2 && k[0] >= '0' && k[0] <= '2' && k[1] == '.' && strings.Trim(k, "0123456789.") == ""
}

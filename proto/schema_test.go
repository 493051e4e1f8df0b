package proto

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// entry is one record of zookeeper.jute: its fields as that file declares them,
// transcribed by hand, and a function that returns our structure.
type entry struct {
	name   string // name of the jute class
	fields string
	fresh  func() Record
}

// schema lists the records of the protocol.
func schema() []entry {
	return []entry{
		{"Id", "ustring scheme; ustring id", func() Record { return new(idRecord) }},
		{"ACL", "int perms; Id id", func() Record { return new(ACL) }},
		{"Stat", "long czxid; long mzxid; long ctime; long mtime; int version; int cversion; int aversion; long ephemeralOwner; int dataLength; int numChildren; long pzxid", func() Record { return new(Stat) }},
		{"RequestHeader", "int xid; int type", func() Record { return new(RequestHeader) }},
		{"ReplyHeader", "int xid; long zxid; int err", func() Record { return new(ReplyHeader) }},
		{"MultiHeader", "int type; boolean done; int err", func() Record { return new(MultiHeader) }},
		{"ConnectRequest", "int protocolVersion; long lastZxidSeen; int timeOut; long sessionId; buffer passwd; boolean readOnly", func() Record { return new(ConnectRequest) }},
		{"ConnectResponse", "int protocolVersion; int timeOut; long sessionId; buffer passwd; boolean readOnly", func() Record { return new(ConnectResponse) }},
		{"CreateRequest", "ustring path; buffer data; vector<ACL> acl; int flags", func() Record { return new(CreateRequest) }},
		{"CreateTTLRequest", "ustring path; buffer data; vector<ACL> acl; int flags; long ttl", func() Record { return new(CreateTTLRequest) }},
		{"CreateResponse", "ustring path", func() Record { return new(CreateResponse) }},
		{"Create2Response", "ustring path; Stat stat", func() Record { return new(Create2Response) }},
		{"DeleteRequest", "ustring path; int version", func() Record { return new(DeleteRequest) }},
		{"ExistsRequest", "ustring path; boolean watch", func() Record { return new(ExistsRequest) }},
		{"ExistsResponse", "Stat stat", func() Record { return new(ExistsResponse) }},
		{"GetDataRequest", "ustring path; boolean watch", func() Record { return new(GetDataRequest) }},
		{"GetDataResponse", "buffer data; Stat stat", func() Record { return new(GetDataResponse) }},
		{"SetDataRequest", "ustring path; buffer data; int version", func() Record { return new(SetDataRequest) }},
		{"SetDataResponse", "Stat stat", func() Record { return new(SetDataResponse) }},
		{"CheckVersionRequest", "ustring path; int version", func() Record { return new(CheckVersionRequest) }},
		{"SyncRequest", "ustring path", func() Record { return new(SyncRequest) }},
		{"SyncResponse", "ustring path", func() Record { return new(SyncResponse) }},
		{"GetACLRequest", "ustring path", func() Record { return new(GetACLRequest) }},
		{"GetACLResponse", "vector<ACL> acl; Stat stat", func() Record { return new(GetACLResponse) }},
		{"SetACLRequest", "ustring path; vector<ACL> acl; int version", func() Record { return new(SetACLRequest) }},
		{"SetACLResponse", "Stat stat", func() Record { return new(SetACLResponse) }},
		{"GetChildrenRequest", "ustring path; boolean watch", func() Record { return new(GetChildrenRequest) }},
		{"GetChildrenResponse", "vector<ustring> children", func() Record { return new(GetChildrenResponse) }},
		{"GetChildren2Request", "ustring path; boolean watch", func() Record { return new(GetChildrenRequest) }},
		{"GetChildren2Response", "vector<ustring> children; Stat stat", func() Record { return new(GetChildren2Response) }},
		{"GetEphemeralsRequest", "ustring prefixPath", func() Record { return new(GetEphemeralsRequest) }},
		{"GetEphemeralsResponse", "vector<ustring> ephemerals", func() Record { return new(GetEphemeralsResponse) }},
		{"GetAllChildrenNumberRequest", "ustring path", func() Record { return new(GetAllChildrenNumberRequest) }},
		{"GetAllChildrenNumberResponse", "int totalNumber", func() Record { return new(GetAllChildrenNumberResponse) }},
		{"AuthPacket", "int type; ustring scheme; buffer auth", func() Record { return new(AuthPacket) }},
		{"GetSASLRequest", "buffer token", func() Record { return new(SASLRequest) }},
		{"SetSASLResponse", "buffer token", func() Record { return new(SASLResponse) }},
		{"ReconfigRequest", "ustring joiningServers; ustring leavingServers; ustring newMembers; long curConfigId", func() Record { return new(ReconfigRequest) }},
		{"WhoAmIResponse", "vector<Id> clientInfo", func() Record { return new(WhoAmIResponse) }},
		{"WatcherEvent", "int type; int state; ustring path", func() Record { return new(WatcherEvent) }},
		{"SetWatches", "long relativeZxid; vector<ustring> dataWatches; vector<ustring> existWatches; vector<ustring> childWatches", func() Record { return new(SetWatches) }},
		{"SetWatches2", "long relativeZxid; vector<ustring> dataWatches; vector<ustring> existWatches; vector<ustring> childWatches; vector<ustring> persistentWatches; vector<ustring> persistentRecursiveWatches", func() Record { return new(SetWatches2) }},
		{"AddWatchRequest", "ustring path; int mode", func() Record { return new(AddWatchRequest) }},
		{"ErrorResponse", "int err", func() Record { return new(ErrorResponse) }},
		{"CheckWatchesRequest", "ustring path; int type", func() Record { return new(CheckWatchesRequest) }},
		{"RemoveWatchesRequest", "ustring path; int type", func() Record { return new(CheckWatchesRequest) }},
	}
}

// idRecord makes ID a record: on the wire it occurs only inside other records.
type idRecord ID

func (i *idRecord) Decode(r *Reader) { i.Scheme, i.ID = r.String(), r.String() }
func (i *idRecord) Append(b []byte) []byte {
	return AppendString(AppendString(b, i.Scheme), i.ID)
}

// juteType returns the jute type of a Go type.
func juteType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int32:
		return "int"
	case reflect.Int64:
		return "long"
	case reflect.String:
		return "ustring"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "buffer"
		}
		return "vector<" + juteType(t.Elem()) + ">"
	case reflect.Struct:
		if t == reflect.TypeFor[ID]() {
			return "Id"
		}
		return t.Name()
	}
	return t.String()
}

// wireFields returns the fields that are sent on the wire.
func wireFields(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for i := range t.NumField() {
		if f := t.Field(i); f.Name != "HasReadOnly" {
			fields = append(fields, f)
		}
	}
	return fields
}

// Our structures should have the fields of the schema, in the same order, with the same
// types and with similar names.
func TestSchema(t *testing.T) {
	t.Parallel()
	for _, e := range schema() {
		typ := reflect.TypeOf(e.fresh()).Elem()
		fields := wireFields(typ)
		want := strings.Split(e.fields, "; ")
		if len(fields) != len(want) {
			t.Errorf("%s has %d fields instead of %d", typ, len(fields), len(want))
			continue
		}
		for i, f := range fields {
			kind, name, _ := strings.Cut(want[i], " ")
			if juteType(f.Type) != kind {
				t.Errorf("%s.%s is of type %s instead of %s", typ, f.Name, juteType(f.Type), kind)
			}
			if !sameName(f.Name, name) {
				t.Errorf("%s.%s is called %s", typ, f.Name, name)
			}
		}
	}
}

// sameName reports whether a field's name is the name in the schema or a prefix.
func sameName(field, jute string) bool {
	field, jute = strings.ToLower(field), strings.ToLower(jute)
	switch fmt.Sprint(field, " ", jute) {
	case "op type", "ids clientinfo":
		return true
	}
	return strings.HasPrefix(jute, field)
}

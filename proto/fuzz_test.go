package proto

import (
	"bytes"
	"reflect"
	"testing"
)

// fuzzRecord feeds arbitrary bytes to a decoder. A record that it accepts should encode to
// a frame that decodes to the same record, aliasing or not. The slow codec should read the
// same record from it.
func fuzzRecord(f *testing.F, name string) {
	var e entry
	for _, e = range schema() {
		if e.name == name {
			break
		}
	}
	lines := golden(f)
	for _, mode := range []string{"full", "null", "empty"} {
		f.Add(lines[[2]string{name, mode}])
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		plain, alias := NewReader(frame), AliasReader(frame)
		a, b := e.fresh(), e.fresh()
		a.Decode(&plain)
		b.Decode(&alias)
		if (plain.Err() == nil) != (alias.Err() == nil) || plain.Len() != alias.Len() || !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v %v %d aliasing, %+v %v %d not", b, alias.Err(), alias.Len(), a, plain.Err(), plain.Len())
		}
		if plain.Err() != nil {
			return
		}
		body := a.Append(nil)
		again, slow := e.fresh(), e.fresh()
		r := NewReader(body)
		if again.Decode(&r); r.Err() != nil || r.Len() != 0 || !reflect.DeepEqual(again, a) {
			t.Fatalf("%+v is encoded to %+v, %v", a, again, r.Err())
		}
		if has := reflect.ValueOf(a).Elem().FieldByName("HasReadOnly"); has.IsValid() {
			if !has.Bool() {
				body = append(body, 0)
			}
			reflect.ValueOf(slow).Elem().FieldByName("HasReadOnly").Set(has)
		}
		if rest, ok := decode(body, reflect.ValueOf(slow).Elem()); !ok || len(rest) > 0 || !reflect.DeepEqual(slow, a) {
			t.Fatalf("the slow codec reads %+v instead of %+v", slow, a)
		}
		if !bytes.Equal(encode(nil, reflect.ValueOf(a).Elem()), body) {
			t.Fatal("the slow codec writes it in another way")
		}
	})
}

// FuzzMulti does the same with a record that isn't a plain list of fields.
func FuzzMulti(f *testing.F) {
	m := MultiRequest{Ops: []MultiOp{{OpCreate, &CreateRequest{Path: "/a", ACL: OpenACL()}}, {OpCheck, &CheckVersionRequest{Path: "/g"}}}}
	f.Add(m.Append(nil))
	f.Add((&MultiRequest{Ops: []MultiOp{{OpGetData, &GetDataRequest{Path: NullString}}}}).Append(nil))
	f.Add((&MultiRequest{}).Append(nil))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var a, b MultiRequest
		r := AliasReader(frame)
		if a.Decode(&r); r.Err() != nil {
			return
		}
		r = NewReader(a.Append(nil))
		if b.Decode(&r); r.Err() != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v is encoded to %+v, %v", a, b, r.Err())
		}
	})
}

// FuzzValidatePath compares ValidatePath with a transcription of Java's code, which
// checks UTF-16 units.
func FuzzValidatePath(f *testing.F) {
	for _, path := range []string{"/", "/a/b", "/a/../b", "/\ufffd", "/😀", "//", "a", "/\xff", "/.../.a"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if want := javaValid(path); (ValidatePath(path) == nil) != want {
			t.Errorf("%q: %v, Java says %v", path, ValidatePath(path), want)
		}
	})
}

func FuzzID(f *testing.F)                           { fuzzRecord(f, "Id") }
func FuzzACL(f *testing.F)                          { fuzzRecord(f, "ACL") }
func FuzzStat(f *testing.F)                         { fuzzRecord(f, "Stat") }
func FuzzRequestHeader(f *testing.F)                { fuzzRecord(f, "RequestHeader") }
func FuzzReplyHeader(f *testing.F)                  { fuzzRecord(f, "ReplyHeader") }
func FuzzMultiHeader(f *testing.F)                  { fuzzRecord(f, "MultiHeader") }
func FuzzConnectRequest(f *testing.F)               { fuzzRecord(f, "ConnectRequest") }
func FuzzConnectResponse(f *testing.F)              { fuzzRecord(f, "ConnectResponse") }
func FuzzCreateRequest(f *testing.F)                { fuzzRecord(f, "CreateRequest") }
func FuzzCreateTTLRequest(f *testing.F)             { fuzzRecord(f, "CreateTTLRequest") }
func FuzzCreateResponse(f *testing.F)               { fuzzRecord(f, "CreateResponse") }
func FuzzCreate2Response(f *testing.F)              { fuzzRecord(f, "Create2Response") }
func FuzzDeleteRequest(f *testing.F)                { fuzzRecord(f, "DeleteRequest") }
func FuzzExistsRequest(f *testing.F)                { fuzzRecord(f, "ExistsRequest") }
func FuzzExistsResponse(f *testing.F)               { fuzzRecord(f, "ExistsResponse") }
func FuzzGetDataRequest(f *testing.F)               { fuzzRecord(f, "GetDataRequest") }
func FuzzGetDataResponse(f *testing.F)              { fuzzRecord(f, "GetDataResponse") }
func FuzzSetDataRequest(f *testing.F)               { fuzzRecord(f, "SetDataRequest") }
func FuzzSetDataResponse(f *testing.F)              { fuzzRecord(f, "SetDataResponse") }
func FuzzCheckVersionRequest(f *testing.F)          { fuzzRecord(f, "CheckVersionRequest") }
func FuzzSyncRequest(f *testing.F)                  { fuzzRecord(f, "SyncRequest") }
func FuzzSyncResponse(f *testing.F)                 { fuzzRecord(f, "SyncResponse") }
func FuzzGetACLRequest(f *testing.F)                { fuzzRecord(f, "GetACLRequest") }
func FuzzGetACLResponse(f *testing.F)               { fuzzRecord(f, "GetACLResponse") }
func FuzzSetACLRequest(f *testing.F)                { fuzzRecord(f, "SetACLRequest") }
func FuzzSetACLResponse(f *testing.F)               { fuzzRecord(f, "SetACLResponse") }
func FuzzGetChildrenRequest(f *testing.F)           { fuzzRecord(f, "GetChildrenRequest") }
func FuzzGetChildrenResponse(f *testing.F)          { fuzzRecord(f, "GetChildrenResponse") }
func FuzzGetChildren2Response(f *testing.F)         { fuzzRecord(f, "GetChildren2Response") }
func FuzzGetEphemeralsRequest(f *testing.F)         { fuzzRecord(f, "GetEphemeralsRequest") }
func FuzzGetEphemeralsResponse(f *testing.F)        { fuzzRecord(f, "GetEphemeralsResponse") }
func FuzzGetAllChildrenNumberRequest(f *testing.F)  { fuzzRecord(f, "GetAllChildrenNumberRequest") }
func FuzzGetAllChildrenNumberResponse(f *testing.F) { fuzzRecord(f, "GetAllChildrenNumberResponse") }
func FuzzAuthPacket(f *testing.F)                   { fuzzRecord(f, "AuthPacket") }
func FuzzGetSASLRequest(f *testing.F)               { fuzzRecord(f, "GetSASLRequest") }
func FuzzSetSASLResponse(f *testing.F)              { fuzzRecord(f, "SetSASLResponse") }
func FuzzReconfigRequest(f *testing.F)              { fuzzRecord(f, "ReconfigRequest") }
func FuzzWhoAmIResponse(f *testing.F)               { fuzzRecord(f, "WhoAmIResponse") }
func FuzzWatcherEvent(f *testing.F)                 { fuzzRecord(f, "WatcherEvent") }
func FuzzSetWatches(f *testing.F)                   { fuzzRecord(f, "SetWatches") }
func FuzzSetWatches2(f *testing.F)                  { fuzzRecord(f, "SetWatches2") }
func FuzzAddWatchRequest(f *testing.F)              { fuzzRecord(f, "AddWatchRequest") }
func FuzzErrorResponse(f *testing.F)                { fuzzRecord(f, "ErrorResponse") }
func FuzzCheckWatchesRequest(f *testing.F)          { fuzzRecord(f, "CheckWatchesRequest") }

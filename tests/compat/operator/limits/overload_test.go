package limits

import (
	"encoding/binary"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// frameOf returns an exists request for /a in a frame of n bytes: servers ignore bytes after the
// request in a frame.
func frameOf(n int) []byte {
	b, mark := proto.BeginFrame(nil)
	b = (&proto.RequestHeader{Xid: 7, Op: proto.OpExists}).Append(b)
	b = (&proto.ExistsRequest{Path: "/a"}).Append(b)
	b = append(b, make([]byte, n-(len(b)-proto.LengthSize))...)
	return proto.EndFrame(b, mark)
}

// TestFramesAndConnections tests jute.maxbuffer, largeRequest*, maxClientCnxns and maxCnxns.
func TestFramesAndConnections(t *testing.T) {
	needOracle(t)
	compare(t, []string{"maxClientCnxns=4", "maxCnxns=6", "largeRequestThreshold=1000", "largeRequestMaxBytes=1500"}, []string{"-Djute.maxbuffer=2000"},
		func(t *testing.T, addr string, s *transcript) {
			for _, n := range []int{1000, 1500, 1501, 2000, 2001} {
				p := guest(t, addr)
				s.note("a frame of %d bytes: %s", n, p.raw(frameOf(n)))
				p.nc.Close()
			}
			for _, n := range []uint32{1 << 31, 0xffffffff, 2001, 1501} {
				p := guest(t, addr)
				s.note("a length of %d alone: %s", int32(n), p.raw(binary.BigEndian.AppendUint32(nil, n)))
				p.nc.Close()
				p = dial(t, addr)
				s.note("before a session: %s", p.raw(binary.BigEndian.AppendUint32(nil, n)))
				p.nc.Close()
			}
			var in []*peer
			for len(in) < 4 {
				in = append(in, guest(t, addr))
			}
			s.note("a fifth from one address: %v", dial(t, addr).connect())
			for i := range 2 {
				p := dialFrom(t, "127.0.0.2", addr)
				s.note("number %d, from another: %v", i+5, p.connect())
				in = append(in, p)
			}
			s.note("a seventh in all: %v", dialFrom(t, "127.0.0.3", addr).connect())
			for i, p := range in {
				s.note("number %d goes on: %s", i+1, p.ask(proto.OpExists, &proto.ExistsRequest{Path: "/"}))
			}
		})
}

// TestSessionsThatBeginTooFast tests connection_throttle_*.
func TestSessionsThatBeginTooFast(t *testing.T) {
	needOracle(t)
	compare(t, []string{"connection_throttle_tokens=2", "connection_throttle_fill_time=100000000", "connection_throttle_weight_enabled=true",
		"connection_throttle_global_session_weight=3", "connection_throttle_renew_session_weight=2"}, nil,
		func(t *testing.T, addr string, s *transcript) {
			first := client(t, addr) // consumes three of the six tokens
			renew := dial(t, addr)
			req := proto.ConnectRequest{TimeOut: 30000, SessionID: 0x1234, Passwd: make([]byte, proto.PasswordSize), HasReadOnly: true}
			must.Get(renew.nc.Write(proto.AppendFrame(nil, req.Append(nil))))(t)
			b, err := renew.frame() // an unknown session costs as much as a known one
			var resp proto.ConnectResponse
			r := proto.NewReader(b)
			resp.Decode(&r)
			s.note("a session that is unknown: timeout %d, answered %v", resp.TimeOut, err == nil)
			s.note("a second: %v", dial(t, addr).connect())
			s.note("the first goes on: %s", first.ask(proto.OpCreate, create("/a", 1)))
		})
}

// TestRequestsThatWait tests request_throttle_max_requests and throttled_op_wait_time. The
// number of requests that wait too long differs from run to run, but the replies to them
// should not.
func TestRequestsThatWait(t *testing.T) {
	needOracle(t)
	compare(t, []string{"request_throttle_max_requests=1", "request_throttle_stall_time=5", "throttled_op_wait_time=1", "globalOutstandingLimit=100000"}, nil,
		func(t *testing.T, addr string, s *transcript) {
			p := client(t, addr)
			for p.ask(proto.OpCreate, create("/a", 1)) == proto.ErrThrottledOp.Error() { // the machine may be slow
			}
			const many = 3000
			var b []byte
			for range many {
				b = p.append(b, proto.OpSetData, set("/a", 10))
			}
			go p.nc.Write(b) //nolint:errcheck // the replies will tell
			first := p.xid - many + 1
			done, throttled, odd := 0, 0, 0
			last := int64(0)
			for i := range int32(many) {
				h, said := p.reply()
				switch {
				case h.Xid != first+i || h.Zxid < last:
					odd++
				case said == proto.Ok.Error():
					done++
				case said == proto.ErrThrottledOp.Error():
					throttled++
				default:
					t.Fatalf("reply %d: %s", i, said)
				}
				last = h.Zxid
			}
			t.Logf("%d done, %d throttled", done, throttled)
			s.note("some are done: %v, some are not: %v, out of order: %d", done > 0, throttled > 0, odd)
			s.note("a ping: %s", p.ask(proto.OpPing, nil))
			stat, said := proto.Stat{}, ""
			for said != proto.Ok.Error() {
				must.Get(p.nc.Write(p.append(nil, proto.OpExists, &proto.ExistsRequest{Path: "/a"})))(t)
				b := must.Get(p.frame())(t)
				r := proto.NewReader(b)
				var h proto.ReplyHeader
				h.Decode(&r)
				if said = h.Err.Error(); h.Err == proto.Ok {
					stat.Decode(&r)
				}
			}
			s.note("what was not done had no effect: %v", int(stat.Version) == done)
		})
}

// TestWritesWithoutPermission tests enableEagerACLCheck, which only an ensemble has.
func TestWritesWithoutPermission(t *testing.T) {
	needOracle(t)
	compareEnsembles(t, []string{"enableEagerACLCheck=true"}, func(t *testing.T, addr string, s *transcript) {
		p := client(t, addr)
		readOnly := []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
		bad := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: "nonsense"}}}
		if said := p.ask(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: readOnly}); said != proto.Ok.Error() {
			t.Fatal(said)
		}
		for _, q := range []struct {
			op  proto.Op
			req proto.Record
		}{
			{proto.OpSetData, set("/a", 1)},
			{proto.OpCreate, create("/a/b", 1)},
			{proto.OpCreate2, create("/a/b", 1)},
			{proto.OpDelete, &proto.DeleteRequest{Path: "/a/b", Version: -1}},
			{proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: proto.OpenACL(), Version: -1}},
			{proto.OpCreate, &proto.CreateRequest{Path: "/c", ACL: bad}},
			{proto.OpCreateContainer, &proto.CreateRequest{Path: "/a/c", ACL: proto.OpenACL(), Flags: int32(proto.ModeContainer)}},
			{proto.OpSetData, set("/none", 1)},
			{proto.OpCreate, create("/c", 1)},
		} {
			h, said := p.askHeader(q.op, q.req)
			s.note("%v: %s, a transaction: %v", q.op, said, h.Zxid != 0)
		}
	})
}

package proto

import (
	"slices"
	"testing"
)

// TestSharedACLs: decoding lists into shared memory should not change the result, even if
// one frame has several lists. Null and empty stay distinct.
func TestSharedACLs(t *testing.T) { //nolint:paralleltest // it counts allocations
	lists := [][]ACL{
		OpenACL(), nil, {},
		{{PermRead, ID{"ip", "10.0.0.0/8"}}, {PermAll, ID{"digest", "a:b"}}, {PermAdmin, ID{"auth", ""}}},
		{{PermWrite, ID{"world", "anyone"}}},
	}
	var frame []byte
	for _, l := range lists {
		frame = AppendACLs(frame, l)
	}
	var room []ACL
	for range 3 {
		room = room[:0]
		r := AliasReader(frame)
		r.acls = &room
		var got [][]ACL
		for range lists {
			got = append(got, r.ACLs())
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		for i, l := range lists {
			if !slices.Equal(got[i], l) || (got[i] == nil) != (l == nil) {
				t.Fatalf("list %d is %v, want %v", i, got[i], l)
			}
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		room = room[:0]
		r := AliasReader(frame)
		r.acls = &room
		for range lists {
			r.ACLs()
		}
	}); n > 1 {
		t.Fatalf("%v allocations", n)
	}
}

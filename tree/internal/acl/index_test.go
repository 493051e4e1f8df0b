package acl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// TestIndexedACL: a long list should grant the same permissions with its index as without.
func TestIndexedACL(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	octet := func() string { return fmt.Sprint(rng.IntN(3)) }
	address := func() string {
		switch rng.IntN(5) {
		case 0:
			return fmt.Sprintf("fe80::%d:%d", rng.IntN(2), rng.IntN(3))
		case 1:
			return fmt.Sprintf("+%s.0%s.%s.%s", octet(), octet(), octet(), octet())
		case 2:
			return "nonsense"
		}
		return octet() + "." + octet() + "." + octet() + "." + octet()
	}
	id := func() proto.ID {
		switch rng.IntN(8) {
		case 0:
			return proto.ID{Scheme: "digest", ID: "u" + octet()}
		case 1:
			return proto.ID{Scheme: "sasl", ID: "u" + octet()}
		case 2:
			return proto.ID{Scheme: "world", ID: []string{"anyone", "else"}[rng.IntN(2)]}
		case 3:
			return proto.ID{Scheme: "ip", ID: address() + fmt.Sprint("/", rng.IntN(34))}
		}
		return proto.ID{Scheme: "ip", ID: address()}
	}
	allowed := 0
	for range 3000 {
		list := make([]proto.ACL, indexFrom+rng.IntN(8))
		for i := range list {
			list[i] = proto.ACL{Perms: proto.Perms(1 << rng.IntN(5)), ID: id()}
			if list[i].ID.ID == "anyone" && rng.IntN(10) > 0 {
				list[i].ID.ID = "else"
			}
			if rng.IntN(4) > 0 && list[i].ID.Scheme == "ip" { // or everything matches
				list[i].ID.ID = "9." + list[i].ID.ID
			}
		}
		var ids []proto.ID
		for range rng.IntN(4) {
			ids = append(ids, id())
		}
		if rng.IntN(50) == 0 {
			ids = append(ids, proto.ID{Scheme: "super"})
		}
		table := NewTable()
		e := table.Intern(list)
		if e.index == nil {
			t.Fatal("no index")
		}
		for p := range 5 {
			perms := proto.Perms(1<<p | 1<<rng.IntN(5))
			want := Allowed(list, perms, ids)
			if got := e.Allows(perms, ids); got != want {
				t.Fatalf("%v, %v under %v: %v, want %v", perms, ids, list, got, want)
			}
			if want {
				allowed++
			}
		}
	}
	if allowed < 1000 || allowed > 14_000 {
		t.Errorf("%d of 15000 were allowed", allowed)
	}
}

// An address with very many zeros is parsed once, not at each check of the list.
func TestLongAddressesAreIndexed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0", 10_000) + "10.0.0.0/8"
	table := NewTable()
	e := table.Intern([]proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "ip", ID: long}}})
	if e.index == nil {
		t.Error("the list has no index")
	}
	for address, want := range map[string]bool{"10.1.2.3": true, "11.1.2.3": false} {
		if e.Allows(proto.PermRead, []proto.ID{{Scheme: "ip", ID: address}}) != want || e.Allows(proto.PermWrite, []proto.ID{{Scheme: "ip", ID: address}}) {
			t.Errorf("%s: not %v", address, want)
		}
	}
}

// BenchmarkLongACL checks one client under a list of 40,000 addresses.
func BenchmarkLongACL(b *testing.B) {
	list := make([]proto.ACL, 40_000)
	for i := range list {
		list[i] = proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}}
	}
	list[len(list)-1].ID.ID = "127.0.0.1"
	table := NewTable()
	e := table.Intern(list)
	ids := []proto.ID{{Scheme: "ip", ID: "127.0.0.1"}}
	for name, allows := range map[string]func() bool{
		"indexed":    func() bool { return e.Allows(proto.PermRead, ids) },
		"one by one": func() bool { return Allowed(list, proto.PermRead, ids) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if !allows() {
					b.Fatal("not allowed")
				}
			}
		})
	}
}

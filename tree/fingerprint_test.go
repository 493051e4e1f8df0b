package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/acl"
)

// The fingerprints of a client's identities should grant the same permissions as the
// identities.
func TestFingerprintsAllowTheSameAsIdentities(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func() proto.ID {
		return proto.ID{Scheme: []string{"digest", "sasl"}[rng.IntN(2)], ID: fmt.Sprint("u", rng.IntN(20))}
	}
	table := acl.NewTable()
	allowed := 0
	for range 2000 {
		var list []proto.ACL
		for range 1 + rng.IntN(4) {
			list = append(list, proto.ACL{Perms: proto.Perms(rng.IntN(32)), ID: pick()})
		}
		ids := []proto.ID{pick(), pick(), pick()}
		tx := Txn{}
		for _, id := range ids {
			tx.Prints = append(tx.Prints, FingerprintOf(id))
		}
		slices.SortFunc(tx.Prints, Fingerprint.Compare)
		perms := proto.Perms(1 << rng.IntN(5))
		want := Allowed(list, perms, ids)
		if want {
			allowed++
		}
		n := new(node)
		n.State().ACL = table.Intern(list)
		if got := tx.allowed(n, perms); got != want {
			t.Fatalf("%v for %v under %v: %v, by identities %v", perms, ids, list, got, want)
		}
	}
	if allowed < 100 || allowed > 1900 {
		t.Errorf("%d of 2000 were allowed: nothing is compared", allowed)
	}
}

// The fingerprint should depend on where the scheme ends and the id begins.
func TestFingerprintsDiffer(t *testing.T) {
	t.Parallel()
	if FingerprintOf(proto.ID{Scheme: "ab", ID: "c"}) == FingerprintOf(proto.ID{Scheme: "a", ID: "bc"}) {
		t.Error("two identities have one fingerprint")
	}
}

// The time for many identities and a long list should not grow with the product of their
// numbers, and the result should be the same as for a few.
func TestManyIdentitiesUnderALongList(t *testing.T) {
	t.Parallel()
	var acl []proto.ACL
	for i := range 80_000 {
		acl = append(acl, proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: fmt.Sprintf("%070d", i)}})
	}
	ids := []proto.ID{{Scheme: "ip", ID: "10.1.2.3"}}
	for i := range 256 {
		ids = append(ids, proto.ID{Scheme: "digest", ID: fmt.Sprintf("%070d", 100_000+i)})
	}
	began := time.Now()
	if Allowed(acl, proto.PermRead, ids) {
		t.Error("a stranger is allowed")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	for i, id := range map[int]proto.ID{
		79_998: {Scheme: "ip", ID: "10.1.0.0/16"}, 79_997: {Scheme: "world", ID: "anyone"}, 79_999: ids[200],
	} {
		with := slices.Clone(acl)
		with[i].ID = id
		if !Allowed(with, proto.PermRead, ids) {
			t.Errorf("%v is not allowed", id)
		}
		with[i].Perms = proto.PermWrite
		if Allowed(with, proto.PermRead, ids) {
			t.Errorf("%v is allowed what the entry does not say", id)
		}
	}
}

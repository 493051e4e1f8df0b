package limits

import (
	"slices"
	"testing"
)

// The address with the most bytes should give up its largest shares first, however many
// connections it has.
func TestExcess(t *testing.T) {
	t.Parallel()
	shares := []Share[string]{{"modest", "a", 50}, {"small", "b", 20}, {"large", "b", 40}, {"medium", "b", 30}}
	for most, want := range map[int64][]string{
		140: nil, 139: {"large"}, 100: {"large"}, 99: {"large", "modest"}, 49: {"large", "modest", "medium"}, 0: {"large", "modest", "medium", "small"},
	} {
		var got []string
		for _, one := range Excess(shares, most) {
			got = append(got, one.Handle)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at most %d bytes: %q, want %q", most, got, want)
		}
	}
}

func TestExcessIsGivenUpInParts(t *testing.T) {
	t.Parallel()
	shares := make([]Share[int], 2*maxExcess)
	for i := range shares {
		shares[i] = Share[int]{i, "a", 1}
	}
	if got := Excess(shares, 0); len(got) != maxExcess {
		t.Errorf("%d shares at a time, want %d", len(got), maxExcess)
	}
}

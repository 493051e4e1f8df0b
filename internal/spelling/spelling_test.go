package spelling

import "testing"

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "ab", 2}, {"ab", "ab", 0}, {"clientPort", "clientProt", 1}, {"get", "gets", 1}, {"sett", "set", 1}, {"get", "got", 1}, {"kitten", "sitting", 3},
	} {
		if got := Distance(tc.a, tc.b); got != tc.want {
			t.Errorf("%q, %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := Distance(tc.b, tc.a); got != tc.want {
			t.Errorf("%q, %q: %d, want %d", tc.b, tc.a, got, tc.want)
		}
	}
}

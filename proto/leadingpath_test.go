package proto

import "testing"

func TestLeadingPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{"\x00\x00\x00\x02/a\x01", "/a"},
		{"\x00\x00\x00\x02/a", "/a"},
		{"\x00\x00\x00\x03/a", ""},
		{"\x00\x00\x00\x00/a", ""},
		{"\xff\xff\xff\xff/a", ""},
		{"\x00\x00\x00", ""},
		{"", ""},
	} {
		if got := LeadingPath([]byte(c.body)); got != c.want {
			t.Errorf("%q: %q, want %q", c.body, got, c.want)
		}
	}
}

package proto

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The numbers are from Java 17: how many U+FFFD replace the bytes.
func TestJavaString(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[string]int{
		"\xff": 1, "\x80": 1, "\xc0": 1, "\xc0\x80": 2, "\xc1\xbf": 2, "\xc2": 1, "\xc2\xc2": 2, "\xe0": 1, "\xe0\x80": 2,
		"\xe0\x80\x80": 3, "\xe0\x9f\x80": 3, "\xe0\xa0": 1, "\xe2\x82": 1, "\xe2\x82\xff": 2, "\xed\xa0": 1, "\xed\xa0\x80": 1,
		"\xed\xa0\xbd\xed\xb8\x80": 2, "\xed\xbf\xbf": 1, "\xed\xa0\xff": 2, "\xee\x80": 1, "\xf0": 1, "\xf0\x80": 2, "\xf0\x80\x80": 3,
		"\xf0\x80\x80\x80": 4, "\xf0\x8f\x80\x80": 4, "\xf0\x90": 1, "\xf0\x90\x80": 1, "\xf0\x9f\x98": 1, "\xf4\x8f": 1, "\xf4\x90": 2,
		"\xf4\x90\x80\x80": 4, "\xf5\x80\x80\x80": 4, "\xf8\x80\x80\x80\x80": 5, "\xfe": 1,
	} {
		for _, around := range [][2]string{{"", ""}, {"/", "/"}, {"é", "A"}, {"😀", "\u20ac"}} {
			in, out := around[0]+bytes+around[1], around[0]+strings.Repeat("\ufffd", want)+around[1]
			if got := JavaString([]byte(in)); got != out {
				t.Errorf("%q: %q, want %q", in, got, out)
			}
			r := AliasReader(append(AppendInt(nil, int32(len(in))), in...))
			if got := r.String(); got != out || r.Err() != nil {
				t.Errorf("%q read: %q, want %q; %v", in, got, out, r.Err())
			}
		}
	}
	for _, s := range []string{"", "/a", "é", "😀\U0010ffff\uffff\ufeff\ufffd"} {
		if got := JavaString([]byte(s)); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzJavaString(f *testing.F) {
	f.Add([]byte("a\xe2\x82b\xed\xa0\x80\xf4"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := JavaString(b)
		if !utf8.ValidString(s) || utf8.Valid(b) && s != string(b) {
			t.Errorf("%q: %q", b, s)
		}
		if len([]rune(s)) > len(b) || strings.ReplaceAll(s, "\ufffd", "") != strings.ReplaceAll(strings.ToValidUTF8(string(b), ""), "\ufffd", "") {
			t.Errorf("%q: %q loses or adds something", b, s)
		}
	})
}

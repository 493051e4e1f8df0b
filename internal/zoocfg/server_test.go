package zoocfg

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

func TestServerLine(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"a:2888:3888":                                               "a:2888:3888:participant",
		"a:2888:3888:observer;2181":                                 "a:2888:3888:observer;0.0.0.0:2181",
		"[2001:db8::1]:2888:3888;[::1]:2181":                        "[2001:db8:0:0:0:0:0:1]:2888:3888:participant;[0:0:0:0:0:0:0:1]:2181",
		"b:2888:3888|a:2889:3889:observer;a:1":                      "a:2889:3889|b:2888:3888:observer;a:1",
		"a:2888:3888|a:2888:3888":                                   "a:2888:3888:participant",
		"[fe80::1%eth0]:2888:3888":                                  "[fe80:0:0:0:0:0:0:1%eth0]:2888:3888:participant",
		"4294967295:1:2|4294967296:1:2|1.2.3.4.5:1:2|1.2.3.256:1:2": "1.2.3.256:1:2|1.2.3.4.5:1:2|255.255.255.255:1:2|4294967296:1:2:participant",
	} {
		s, err := ParseServerLine(7, spec)
		if err != nil || s.String() != want || s.Line() != "server.7="+want {
			t.Errorf("%s: %v, %v", spec, s, err)
			continue
		}
		again, err := ParseServerLine(7, s.String())
		if err != nil || again.String() != want || again.Role != s.Role {
			t.Errorf("%s does not read back: %v, %v", s, again, err)
		}
	}
}

func TestServerLineErrors(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]error{
		"": ErrWrongFormat, "a": ErrWrongFormat, "a:1": ErrWrongFormat, "a:1:2:observer:": nil, "a:1:2:observer:x": ErrWrongFormat,
		";": ErrWrongFormat, "|": ErrWrongFormat, "a:1:2;;2181": ErrWrongFormat, "a:1:2;a:b:1": ErrWrongFormat, "a:1:2;:": ErrWrongFormat,
		"[::1:1:2": ErrWrongFormat, "[::1]:": ErrWrongFormat, "[::1]": ErrWrongFormat, "a:1:2;[::1": ErrWrongFormat,
		"a:x:2": ErrUnresolved, "a:1:2 ": ErrUnresolved, "a:1:2;x": ErrUnresolved, "a:1:2;[::1]": ErrUnresolved,
		"a:65536:2": ErrPortRange, "a:1:-1": ErrPortRange, "a:1:2;65536": ErrPortRange,
		"a:1:1": ErrSamePorts, "a:1:2:boss": ErrPeerType, "a:1:2:observer|b:1:2:participant": ErrMixedRoles,
	} {
		if _, err := ParseServerLine(1, spec); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", spec, err, want)
		}
	}
}

func TestCheckAddresses(t *testing.T) {
	t.Parallel()
	two := must.Get(ParseServerLine(1, "a:1:2|b:1:2"))(t)
	if err := two.CheckAddresses(false); !errors.Is(err, ErrMultiAddress) {
		t.Errorf("got %v", err)
	}
	if err := two.CheckAddresses(true); err != nil {
		t.Error(err)
	}
}

func TestCheckConflict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b     string
		conflict bool
	}{
		{"a:1:2;3", "b:1:2;3", false},
		{"a:1:2;3", "A:2:4;5", true},
		{"a:1:2;a:3", "b:1:2;a:3", true},
		{"a:1:2;a:3", "a:4:3", true},
		{"localhost:1:2", "localhost:1:2", false},
		{"127.0.0.1:1:2", "127.1:1:2", false},
		{"10.0.0.1:1:2", "10.1:1:3", true},
		{"[::]:1:2", "[::]:1:2", false},
	} {
		a, errA := ParseServerLine(1, tc.a)
		b, errB := ParseServerLine(2, tc.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if err := a.CheckConflict(b); errors.Is(err, ErrConflict) != tc.conflict {
			t.Errorf("%s and %s: %v", tc.a, tc.b, err)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "10": 10, "+10": 10, "-10": -10, "0x1F": 31, "0X1f": 31, "#1f": 31, "-#1f": -31, "010": 8, "-0x8000000000000000": math.MinInt64,
	} {
		if got, ok := decode(text); !ok || got != want {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "0x", "#", "08", "--1", "0x-1", "#+1", "1_000", " 1", "1.5", "9223372036854775808"} {
		if got, ok := decode(text); ok {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func FuzzServerLine(f *testing.F) {
	for _, spec := range []string{"a:2888:3888:observer;2181", "[::1]:1:2|b:3:4;[::1]:5", "1.2:1:2", ";|:[]%"} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := ParseServerLine(1, spec)
		if err != nil {
			return
		}
		again, err := ParseServerLine(1, s.String())
		if err != nil {
			// A host that contains a bracket has no written form.
			if hasBracket(s) {
				return
			}
			t.Fatalf("%q became %q, which does not read: %v", spec, s, err)
		}
		if !hasBracket(s) && again.String() != s.String() {
			t.Fatalf("%q became %q, then %q", spec, s, again)
		}
		if err := s.CheckConflict(again); err == nil && len(s.endpoints()) > 0 && reflect.DeepEqual(s, again) {
			t.Fatalf("%q does not conflict with itself", s)
		}
	})
}

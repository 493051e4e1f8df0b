package netns

import (
	"os"
	"testing"
)

// Needed skips a test if this process cannot create a network. With
// ZKGO_REQUIRE=1 it fails the test instead.
func Needed(t testing.TB) {
	t.Helper()
	err := Usable()
	switch {
	case err == nil:
	case os.Getenv("ZKGO_REQUIRE") == "1":
		t.Fatalf("ZKGO_REQUIRE=1, but there are no network namespaces with TUN devices: %v", err)
	default:
		t.Skipf("needs root, network namespaces and %s (set ZKGO_REQUIRE=1 to fail instead): %v", tunDevice, err)
	}
}

package schemes

import (
	"strings"
	"testing"
)

// ZooKeeper's own documentation contains this hash.
func TestDigestIsZooKeepers(t *testing.T) {
	t.Parallel()
	got, err := DigestID("SHA1", "super:superpw")
	if err != nil || got != "super:g9oN2HttPfn8MMWJZ2r45Np/LIA=" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := DigestID("CRC32", "a:b"); err == nil {
		t.Error("CRC32 was accepted as a digest")
	}
}

// TestDigestAlgorithms compares with the first characters of OpenSSL's results.
func TestDigestAlgorithms(t *testing.T) {
	t.Parallel()
	for alg, want := range map[string]string{
		"MD5":         "wj9ntl1lUHd6",
		"SHA":         "Jq7wMyA/w2Vd",
		"SHA1":        "Jq7wMyA/w2Vd",
		"SHA-1":       "Jq7wMyA/w2Vd",
		"SHA-224":     "buY2RDLG1qb1",
		"SHA-256":     "/Y8xRBngpX5d",
		"SHA-384":     "joW9fAMExHHj",
		"SHA-512":     "JuOwXdmk4f1o",
		"SHA-512/224": "uQhd9bjKXP6G",
		"SHA-512/256": "GahcuEqKVDom",
		"SHA3-224":    "VetFxgqKhf3M",
		"SHA3-256":    "3+U94Pf1dSrK",
		"SHA3-384":    "d4zgobLcJSLR",
		"SHA3-512":    "CxK7PYZe5Jmb",
	} {
		if got, err := DigestID(alg, "u:p"); err != nil || !strings.HasPrefix(got, "u:"+want) {
			t.Errorf("%s: %s, %v", alg, got, err)
		}
	}
}

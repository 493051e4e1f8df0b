package schemes

import (
	"crypto/md5" //nolint:gosec // see NewDigest
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"strings"
)

// DigestID returns user:base64(hash(user:password)); without a colon, all of auth is
// the user.
func DigestID(alg, auth string) (string, error) {
	h := NewDigest(alg)
	if h == nil {
		return "", fmt.Errorf("unknown digest algorithm %q: want e.g. SHA1, SHA-256, SHA-512 or SHA3-256", alg)
	}
	h.Write([]byte(auth))
	user, _, _ := strings.Cut(auth, ":")
	return user + ":" + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// NewDigest returns the hash that Java calls alg, or nil.
func NewDigest(alg string) hash.Hash {
	switch strings.ToUpper(alg) {
	case "MD5":
		return md5.New() //nolint:gosec // existing ACLs may use it
	case "SHA", "SHA1", "SHA-1":
		return sha1.New()
	case "SHA-224":
		return sha256.New224()
	case "SHA-256":
		return sha256.New()
	case "SHA-384":
		return sha512.New384()
	case "SHA-512":
		return sha512.New()
	case "SHA-512/224":
		return sha512.New512_224()
	case "SHA-512/256":
		return sha512.New512_256()
	case "SHA3-224":
		return sha3.New224()
	case "SHA3-256":
		return sha3.New256()
	case "SHA3-384":
		return sha3.New384()
	case "SHA3-512":
		return sha3.New512()
	}
	return nil
}

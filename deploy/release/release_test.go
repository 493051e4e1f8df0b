package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

var at = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// project writes files into a directory and returns a release of that directory.
func project(t *testing.T, files map[string]string) *release {
	t.Helper()
	r := &release{source: t.TempDir(), out: t.TempDir(), work: t.TempDir(), version: "1.2.3", revision: "0123456789abcdef", at: at}
	for name, text := range files {
		to := filepath.Join(r.source, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"README.md":        "[a](docs/a.md#b--c-d) [contribute](CONTRIBUTING.md#how) ![p](docs/plots/p.svg \"title\") [out](https://example.com/x)\n```\n[code](none.md)\n```\n[ci](.ci)\n",
		"CHANGELOG.md":     "",
		"SECURITY.md":      "",
		"CONTRIBUTING.md":  "# How\n",
		"docs/a.md":        "# A\n```\n# Not\n```\n## b / `c d`\n[up](../README.md) [here](#a) [code](../cmd/main.go)\n",
		"docs/plots/p.svg": "<svg/>",
		"cmd/main.go":      "package main\n",
		".ci/run":          "",
	}
	r := project(t, pages)
	if err := r.documents(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"README.md": "[a](docs/a.md#b--c-d) [contribute](https://github.com/zkgo/zkgo/blob/v1.2.3/CONTRIBUTING.md#how) ![p](docs/plots/p.svg \"title\") [out](https://example.com/x)\n```\n[code](none.md)\n```\n[ci](https://github.com/zkgo/zkgo/tree/v1.2.3/.ci)\n",
		"docs/a.md": "# A\n```\n# Not\n```\n## b / `c d`\n[up](../README.md) [here](#a) [code](https://github.com/zkgo/zkgo/blob/v1.2.3/cmd/main.go)\n",
	} {
		got, err := os.ReadFile(filepath.Join(r.work, "docs", name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	for _, dead := range []string{"[x](none.md)", "[x](docs/a.md#not)", "[x](#nothing)", "[x](../outside.md)"} {
		pages["SECURITY.md"] = "first\n" + dead + "\n"
		if err := project(t, pages).documents(); err == nil || !strings.Contains(err.Error(), "SECURITY.md:2: dead link") {
			t.Errorf("%s: %v", dead, err)
		}
	}
}

func TestRef(t *testing.T) {
	t.Parallel()
	r := release{version: "0.0.0-dev.20261122090000.g0123456789ab", revision: "0123456789abcdef"}
	if got := r.ref(); got != r.revision {
		t.Errorf("%q", got)
	}
}

// TestChart packages a small chart, twice.
func TestChart(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"deploy/helm/zookeeper/Chart.yaml":         "apiVersion: v2\n# A comment.\nname: zookeeper\nversion: 0.0.0\nappVersion: \"0.0.0\"\n",
		"deploy/helm/zookeeper/values.yaml":        "a: 1\n",
		"deploy/helm/zookeeper/templates/a.yaml":   "b: 2\n",
		"deploy/helm/zookeeper/ci/test.yaml":       "c: 3\n",
		"deploy/helm/zookeeper/templates/a.yaml~":  "old",
		"deploy/helm/zookeeper/.helmignore":        "# comment\n*~\nci/\n",
		"deploy/helm/zookeeper/templates/deep/x.y": "d",
	}
	var sums []string
	for range 2 {
		r := project(t, files)
		if err := r.chart(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(r.out, "zookeeper-1.2.3.tgz")
		sum, err := sha256File(name)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
		content := untar(t, name)
		if got := content["zookeeper/Chart.yaml"]; got != "apiVersion: v2\n# A comment.\nname: zookeeper\nversion: 1.2.3\nappVersion: \"1.2.3\"\n" {
			t.Errorf("Chart.yaml:\n%s", got)
		}
		if content["zookeeper/values.yaml"] == "" || content["zookeeper/templates/a.yaml"] == "" || content["zookeeper/templates/deep/x.y"] == "" || content["zookeeper/ci/test.yaml"] != "" || content["zookeeper/templates/a.yaml~"] != "" {
			t.Errorf("%q", content)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("%q differ", sums)
	}
	files["deploy/helm/zookeeper/Chart.yaml"] = "name: zkgo\n"
	if err := project(t, files).chart(); err == nil {
		t.Error("a chart without a version is packaged")
	}
}

func untar(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(b)
	}
}

// secret writes a new private key, with a passphrase unless it is "".
func secret(t *testing.T, passphrase string) (file string, public *openpgp.Entity) {
	t.Helper()
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return at.Add(-time.Hour) }}
	e, err := openpgp.NewEntity("zkgo", "test", "zkgo@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if passphrase != "" {
		err = e.EncryptPrivateKeys([]byte(passphrase), config)
	}
	if passphrase != "" {
		err = errors.Join(err, e.SerializePrivateWithoutSigning(w, config))
	} else {
		err = errors.Join(err, e.SerializePrivate(w, config))
	}
	file = filepath.Join(t.TempDir(), "secret.asc")
	if err := errors.Join(err, w.Close(), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file, e
}

// TestSign signs twice with the same key and verifies the signatures.
func TestSign(t *testing.T) {
	t.Parallel()
	const sums = "0123  a\n"
	key, _ := secret(t, "open")
	words := filepath.Join(t.TempDir(), "passphrase")
	if err := os.WriteFile(words, []byte("open\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var signatures [][]byte
	for range 2 {
		s, err := newSigner(key, words, at)
		if err != nil {
			t.Fatal(err)
		}
		r := project(t, nil)
		r.chartTitle, r.chartYAML = "zookeeper", []byte("name: zookeeper\n")
		if err := errors.Join(os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums), 0o644), os.WriteFile(filepath.Join(r.out, r.chartName()), []byte("chart"), 0o644), r.sign(s)); err != nil {
			t.Fatal(err)
		}
		public, err := os.ReadFile(filepath.Join(r.out, publicKeyFile))
		if err != nil {
			t.Fatal(err)
		}
		ring, err := openpgp.ReadKeyRing(bytes.NewReader(public))
		if err != nil || len(ring) != 1 || ring[0].PrivateKey != nil {
			t.Fatalf("the published key is not one public key: %v, %v", ring, err)
		}
		for _, name := range []string{"SHA256SUMS.asc", r.chartName() + ".prov"} {
			b, err := os.ReadFile(filepath.Join(r.out, name))
			if err != nil {
				t.Fatal(err)
			}
			signatures = append(signatures, b)
		}
		if _, err := openpgp.CheckArmoredDetachedSignature(ring, strings.NewReader(sums), bytes.NewReader(signatures[0]), nil); err != nil {
			t.Error(err)
		}
		block, _ := clearsign.Decode(signatures[1])
		if block == nil || !strings.HasPrefix(string(block.Plaintext), "name: zookeeper\n...\nfiles:\n  zookeeper-1.2.3.tgz: sha256:") {
			t.Fatalf("%s", signatures[1])
		}
		if _, err := block.VerifySignature(ring, nil); err != nil {
			t.Error(err)
		}
	}
	if !slices.EqualFunc(signatures[:2], signatures[2:], bytes.Equal) {
		t.Error("the second signatures are others")
	}
}

func TestWrongKeys(t *testing.T) {
	t.Parallel()
	locked, _ := secret(t, "open")
	no := filepath.Join(t.TempDir(), "no")
	if err := os.WriteFile(no, []byte("shut"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, passphrase, want string }{
		{filepath.Join(t.TempDir(), "missing"), "", "missing"},
		{no, "", "no OpenPGP key"},
		{locked, "", "-passphrase-file"},
		{locked, no, "is wrong"},
	} {
		if _, err := newSigner(c.key, c.passphrase, at); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestDescribed(t *testing.T) {
	t.Parallel()
	r := project(t, map[string]string{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3 (today)\n"})
	for version, want := range map[string]bool{"1.2.3": true, "v1.2.3": true, "1.2.3-rc.1": true, "1.2.4": false} {
		r.version = version
		if err := r.described(); (err == nil) != want {
			t.Errorf("%s: %v", version, err)
		}
	}
}

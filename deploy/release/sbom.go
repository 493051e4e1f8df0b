package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// sbom writes the list of modules in a program. It reads them from the binary, so the list
// has the modules that Go linked, not all that go.mod allows.
func (r *release) sbom(goos, goarch, bin string) (err error) {
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return err
	}
	sum, err := sha256File(bin)
	if err != nil {
		return err
	}
	main := cyclonedx.Component{
		BOMRef: purl(info.Main.Path, r.version), Type: cyclonedx.ComponentTypeApplication, Name: info.Main.Path, Version: r.version,
		PackageURL: purl(info.Main.Path, r.version),
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
	}
	std := cyclonedx.Component{BOMRef: purl("std", info.GoVersion), Type: cyclonedx.ComponentTypeLibrary, Name: "std",
		Version: strings.TrimPrefix(info.GoVersion, "go"), PackageURL: purl("std", strings.TrimPrefix(info.GoVersion, "go"))}
	components, refs := []cyclonedx.Component{std}, []string{std.BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s is replaced: go.mod must not", m.Path)
		}
		c := cyclonedx.Component{BOMRef: purl(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl(m.Path, m.Version)}
		if sum := moduleSum(m); sum != "" {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
		}
		components, refs = append(components, c), append(refs, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.at.Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	f, err := os.Create(filepath.Join(r.out, fmt.Sprintf("zkgo-%s-%s-%s.cdx.json", r.version, goos, goarch)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Today's scanners read version 1.6.
	return cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// purl returns the package URL that scanners use for a Go module.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// moduleSum returns Go's checksum of a module in hexadecimal, or "".
func moduleSum(m *debug.Module) string {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(b)
}

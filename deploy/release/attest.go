package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Types of statements.
const (
	spdxType       = "https://spdx.dev/Document"
	provenanceType = "https://slsa.dev/provenance/v1"
	buildType      = repository + "/tree/main/deploy/release"
	statementMedia = "application/vnd.in-toto+json"
)

// attestation returns the manifest that describes an image: an in-toto statement with its
// contents (SPDX), and one with its origin (SLSA provenance).
func (r *release) attestation(p platformImage, digest v1.Hash) (v1.Image, error) {
	subject := &intoto.ResourceDescriptor{
		Name:   "pkg:oci/zkgo@" + r.version + "?platform=linux%2F" + p.goarch,
		Digest: map[string]string{digest.Algorithm: digest.Hex},
	}
	contents, err := r.spdx(p.bin, p.goarch)
	if err != nil {
		return nil, err
	}
	origin, err := r.origin([]string{p.bin}, "linux/"+p.goarch)
	if err != nil {
		return nil, err
	}
	var layers []mutate.Addendum
	for _, s := range []struct {
		kind      string
		predicate []byte
	}{{spdxType, contents}, {provenanceType, origin}} {
		b, err := statement(s.kind, s.predicate, subject)
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{
			Layer: static.NewLayer(b, statementMedia), MediaType: statementMedia,
			Annotations: map[string]string{"in-toto.io/predicate-type": s.kind},
		})
	}
	return r.assemble(&v1.ConfigFile{OS: "unknown", Architecture: "unknown"}, layers...)
}

// writeProvenance writes the statement about the files of the release.
func (r *release) writeProvenance() error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var subjects []*intoto.ResourceDescriptor
	for _, f := range files {
		sum, err := sha256File(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		subjects = append(subjects, &intoto.ResourceDescriptor{Name: f.Name(), Digest: map[string]string{"sha256": sum}})
	}
	var bins []string
	for _, p := range r.platforms {
		bins = append(bins, r.built[p])
	}
	origin, err := r.origin(bins, strings.Join(r.platforms, ","))
	if err != nil {
		return err
	}
	b, err := statement(provenanceType, origin, subjects...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "zkgo-"+r.version+".intoto.json"), append(b, '\n'), 0o644)
}

// origin returns the provenance of programs: the commit, Go and the modules. It says nothing
// about the machine and the time of the build, because the result doesn't depend on them.
func (r *release) origin(bins []string, platforms string) ([]byte, error) {
	dependencies := map[string]*intoto.ResourceDescriptor{}
	goVersion := ""
	for _, bin := range bins {
		info, err := buildinfo.ReadFile(bin)
		if err != nil {
			return nil, err
		}
		goVersion = info.GoVersion
		for _, m := range info.Deps {
			d := &intoto.ResourceDescriptor{Uri: purl(m.Path, m.Version)}
			if sum := moduleSum(m); sum != "" {
				d.Digest = map[string]string{"dirHash": sum}
			}
			dependencies[d.Uri] = d
		}
	}
	all := []*intoto.ResourceDescriptor{
		{Uri: "git+" + repository + "@" + r.ref(), Digest: map[string]string{"gitCommit": r.revision}},
		{Uri: purl("std", strings.TrimPrefix(goVersion, "go"))},
	}
	for _, uri := range slices.Sorted(maps.Keys(dependencies)) {
		all = append(all, dependencies[uri])
	}
	external, err := structpb.NewStruct(map[string]any{"source": "git+" + repository + "@" + r.ref(), "version": r.version, "platforms": platforms})
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(map[string]any{"go": goVersion, "flags": strings.Join(buildFlags, " ")})
	if err != nil {
		return nil, err
	}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{BuildType: buildType, ExternalParameters: external, InternalParameters: internal, ResolvedDependencies: all},
		RunDetails:      &provenance.RunDetails{Builder: &provenance.Builder{Id: buildType}},
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	return stable(p)
}

// statement returns an in-toto statement with a predicate.
func statement(kind string, predicate []byte, subjects ...*intoto.ResourceDescriptor) ([]byte, error) {
	var p structpb.Struct
	if err := protojson.Unmarshal(predicate, &p); err != nil {
		return nil, err
	}
	s := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: subjects, PredicateType: kind, Predicate: &p}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return stable(s)
}

// stable returns a message as JSON, always with the same bytes: protojson varies the spaces on
// purpose.
func stable(m proto.Message) ([]byte, error) {
	b, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, b)
	return out.Bytes(), err
}

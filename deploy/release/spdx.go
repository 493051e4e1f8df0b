package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// authorities is the module with the certificates in the image.
const authorities = "golang.org/x/crypto/x509roots/fallback"

// notInID matches characters that an SPDX identifier can't contain.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// spdx returns the contents of an image in the format that BuildKit attaches to images: the
// program's modules, and the list of authorities.
func (r *release) spdx(bin, goarch string) ([]byte, error) {
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	sum, err := sha256File(bin)
	if err != nil {
		return nil, err
	}
	main := spdxPackage(info.Main.Path, r.version, sum)
	main.PackageLicenseDeclared, main.PrimaryPackagePurpose = "Apache-2.0", "APPLICATION"
	doc := spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: "zkgo " + r.version + " linux/" + goarch, DocumentNamespace: repository + "/spdx/" + r.version + "/linux-" + goarch + "/" + sum,
		CreationInfo:  &spdx.CreationInfo{Creators: []common.Creator{{CreatorType: "Tool", Creator: "zkgo-release-" + r.version}}, Created: r.at.Format(time.RFC3339)},
		Packages:      []*spdx.Package{main},
		Relationships: []*spdx.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, main.PackageSPDXIdentifier)},
	}
	add := func(p *spdx.Package, from common.ElementID, kind string) {
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, relation(from, kind, p.PackageSPDXIdentifier))
	}
	add(spdxPackage("std", strings.TrimPrefix(info.GoVersion, "go"), ""), main.PackageSPDXIdentifier, common.TypeRelationshipDependsOn)
	for _, m := range info.Deps {
		add(spdxPackage(m.Path, m.Version, moduleSum(m)), main.PackageSPDXIdentifier, common.TypeRelationshipDependsOn)
	}
	roots, err := authoritiesModule()
	if err != nil {
		return nil, err
	}
	add(spdxPackage(roots.Path, roots.Version, moduleSum(roots)), "DOCUMENT", common.TypeRelationshipDescribe)
	return json.Marshal(doc)
}

// authoritiesModule returns the module of the certificates that this program was built with.
func authoritiesModule() (*debug.Module, error) {
	own, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range own.Deps {
			if m.Path == authorities {
				return m, nil
			}
		}
	}
	return nil, errors.New("this program doesn't know the version of " + authorities)
}

func spdxPackage(path, version, sum string) *spdx.Package {
	p := &spdx.Package{
		PackageName: path, PackageVersion: version, PackageSPDXIdentifier: common.ElementID("Package-" + notInID.ReplaceAllString(path, "-") + "-" + notInID.ReplaceAllString(version, "-")),
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl(path, version)}},
	}
	if sum != "" {
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
	}
	return p
}

func relation(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to}, Relationship: kind}
}

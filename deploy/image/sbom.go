// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The parts of an SPDX 2.3 document that are used here.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name             string          `json:"name"`
		ID               string          `json:"SPDXID"`
		Version          string          `json:"versionInfo"`
		DownloadLocation string          `json:"downloadLocation"`
		FilesAnalyzed    bool            `json:"filesAnalyzed"`
		Checksums        []spdxChecksum  `json:"checksums,omitempty"`
		SourceInfo       string          `json:"sourceInfo,omitempty"`
		References       []spdxReference `json:"externalRefs"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// sbom returns the bill of materials of the binaries for one architecture, as SPDX: the
// modules that their build info names, with their sums, and Go's standard library.
func (r *release) sbom(binaries []binary) ([]byte, error) {
	stdlib := spdxModule("stdlib", strings.TrimPrefix(binaries[0].info.GoVersion, "go"))
	packages := []spdxPackage{stdlib}
	for _, m := range allModules(binaries) {
		p := spdxModule(m.Path, m.Version)
		p.SourceInfo = "go.sum " + m.Sum
		packages = append(packages, p)
	}
	var relations []spdxRelationship
	all := sha256.New()
	for _, b := range binaries {
		all.Write(b.content)
		p := spdxModule(b.info.Path, r.version)
		p.Checksums = []spdxChecksum{{"SHA256", fmt.Sprintf("%x", sha256.Sum256(b.content))}}
		packages = append(packages, p)
		relations = append(relations, spdxRelationship{"SPDXRef-DOCUMENT", "DESCRIBES", p.ID}, spdxRelationship{p.ID, "DEPENDS_ON", stdlib.ID})
		for _, m := range modules(b.info) {
			relations = append(relations, spdxRelationship{p.ID, "DEPENDS_ON", spdxModule(m.Path, m.Version).ID})
		}
	}
	b := binaries[0]
	document, err := json.MarshalIndent(spdxDocument{
		Version:       "SPDX-2.3",
		DataLicense:   "CC0-1.0",
		ID:            "SPDXRef-DOCUMENT",
		Name:          "admission-dispatcher-" + r.version + "-" + b.architecture,
		Namespace:     "https://" + b.info.Main.Path + "/sbom/" + fmt.Sprintf("%x", all.Sum(nil)),
		Creation:      spdxCreation{r.created.Format(time.RFC3339), []string{"Tool: deploy/image"}},
		Packages:      packages,
		Relationships: relations,
	}, "", " ")
	return append(document, '\n'), err
}

func spdxModule(path, version string) spdxPackage {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.':
			return r
		}
		return '-'
	}, path)
	return spdxPackage{
		Name:             path,
		ID:               "SPDXRef-Package-" + id,
		Version:          version,
		DownloadLocation: "NOASSERTION",
		References:       []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}

// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// openAPI is one document.
type openAPI struct {
	tried chan struct{} // closed once it was read, or could not be
	// What follows the Kinds' lock guards.
	asked time.Time           // for it, the last time
	types *policyschema.Types // nil: it is not known
	size  int                 // what types take
	mark  string              // of the version that was read
	err   error               // why it is not read, or not read again
}

// document returns the document of a group and version, which is read soon if it is new.
func (k *Kinds) document(of schema.GroupVersion) (*openAPI, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if d := k.documents[of]; d != nil {
		d.asked = now
		return d, nil
	}
	if len(validation.IsDNS1035Label(of.Version)) > 0 || of.Group != "" && len(validation.IsDNS1123Subdomain(of.Group)) > 0 {
		return nil, errNoGroupVersion // it would be another path of the API
	}
	if len(k.documents) >= maxGroupVersions && !k.forgetOne(now) {
		return nil, errManyKinds
	}
	d := &openAPI{tried: make(chan struct{}), asked: now}
	k.documents[of] = d
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return d, nil
}

// forgetOne makes room for a document, with the lock held: of the one that nobody has asked for
// the longest, if that is long ago. Policies change, and so do a cluster's groups.
func (k *Kinds) forgetOne(now time.Time) bool {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(k.documents)), func(a, b schema.GroupVersion) int {
		return k.documents[a].asked.Compare(k.documents[b].asked)
	})
	if now.Sub(k.documents[oldest].asked) < unaskedFor {
		return false
	}
	delete(k.documents, oldest)
	return true
}

// outcome returns what came of a document that was tried.
func (k *Kinds) outcome(d *openAPI) (*policyschema.Types, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.types == nil {
		return nil, d.err
	}
	return d.types, nil
}

// knows reports whether the document was read as it is.
func (k *Kinds) knows(d *openAPI, mark string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return d.types != nil && d.mark == mark
}

// came keeps what a look at a document came to. While one cannot be read again, what is
// known stays known; what the cluster does not serve any more does not.
func (k *Kinds) came(of schema.GroupVersion, d *openAPI, types *policyschema.Types, size int, mark string, err error) {
	k.mu.Lock()
	total := size
	for _, other := range k.documents {
		if other != d {
			total += other.size
		}
	}
	if err == nil && total > maxKinds {
		err = told{errManyKinds}
	}
	before := d.err
	if err == nil {
		d.types, d.size, d.mark, d.err = types, size, mark, nil
	} else {
		d.err = reason(context.Background(), err, "its OpenAPI documents")
		if errors.Is(err, errNoGroupVersion) || errors.Is(err, errManyKinds) {
			d.types, d.size, d.mark = nil, 0, ""
		}
	}
	now := d.err
	select {
	case <-d.tried:
	default:
		close(d.tried)
	}
	k.mu.Unlock()
	if log := k.of.cfg.Logger.With("cluster", k.cluster, "groupVersion", of.String()); now != nil && (before == nil || before.Error() != now.Error()) {
		log.Warn("the types of a cluster's kinds cannot be read: apply configurations are not merged into those that are not known", "error", err.Error())
	} else if now == nil && before != nil {
		log.Info("the types of a cluster's kinds are read again")
	}
}

// read reads a document. Clusters that have the same one share what is made of it: the very
// same bytes, whatever they call it.
func (k *Kinds) read(ctx context.Context, of schema.GroupVersion, left *budget) (*policyschema.Types, int, error) {
	if left.left <= 0 {
		return nil, 0, failureOf(tooLarge{left.limit})
	}
	body, err := k.client.get(ctx, acceptAny, nil, append([]string{"openapi", "v3"}, strings.Split(pathOf(of), "/")...)...)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = body.Close() }()
	left.from = body
	sum := sha256.New()
	all := io.TeeReader(left, sum)
	types, size, err := policyschema.ReadDocument(all)
	if err == nil {
		_, err = io.Copy(io.Discard, all)
	}
	if err != nil {
		return nil, 0, failureOf(err)
	}
	return k.of.shared([sha256.Size]byte(sum.Sum(nil)), types), size, nil
}

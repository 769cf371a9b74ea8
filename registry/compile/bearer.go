// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/jwt"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// bearers are the issuers whose JSON Web Tokens a cluster accepts, and its tokens that were
// good. Each cluster has its own: none makes another's be verified again.
type bearers struct {
	issuers jwt.Set
	who     []chain.Identity // of the issuers

	mu   sync.Mutex
	good map[[sha256.Size]byte]bearer
}

// bearer is whose a good token is, and until when.
type bearer struct {
	who   chain.Identity
	until time.Time
}

// maxBearers bounds the tokens of a cluster that are remembered. An API server has one for
// each URL of the registration, and a new one every few minutes.
const maxBearers = 1024

// identify returns whose the token is, which has this sum. What was good is so until it
// expires; what was not is judged again.
func (b *bearers) identify(token []byte, sum [sha256.Size]byte, now time.Time) (chain.Identity, error) {
	if known, ok := b.remembered(sum, now); ok {
		return known, nil
	}
	t, err := b.issuers.Verify(token, now)
	if err != nil {
		return chain.Identity{}, err
	}
	who := narrowed(b.who[t.Issuer], t)
	b.remember(sum, bearer{who, t.Until}, now)
	return who, nil
}

func (b *bearers) remembered(sum [sha256.Size]byte, now time.Time) (chain.Identity, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.good[sum]
	return known.who, ok && now.Before(known.until)
}

// remember makes room when there is none: first what has expired goes, then any one.
func (b *bearers) remember(sum [sha256.Size]byte, fresh bearer, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.good) >= maxBearers {
		for known := range b.good {
			if !now.Before(b.good[known].until) {
				delete(b.good, known)
			}
		}
	}
	for known := range b.good {
		if len(b.good) < maxBearers {
			break
		}
		delete(b.good, known)
	}
	b.good[sum] = fresh
}

// narrowed returns who it is that may send no more than the token attests.
func narrowed(who chain.Identity, t jwt.Token) chain.Identity {
	if t.Group == "" || t.Group == jwt.AllGroups {
		return who
	}
	limited := chain.APIServer{Name: t.Subject, Groups: []string{t.Group}}
	if who.Server != nil {
		limited.Name = who.Server.Name
		if !slices.Contains(who.Server.Groups, t.Group) {
			limited.Groups = nil
		}
	}
	return chain.Identity{Cluster: who.Cluster, Server: &limited}
}

// claimJWT enters the issuer whose tokens stand for somebody of the cluster.
func (c *clusters) claimJWT(m *manifest.Cluster, who chain.Identity, its credential) {
	at := its.at.Child("jwt")
	keys := c.readKeys(m, its.jwt.JWKSFile, at.Child("jwksFile"))
	if c.ids.bearers[m.Name] == nil {
		c.ids.bearers[m.Name] = &bearers{good: map[[sha256.Size]byte]bearer{}}
	}
	b := c.ids.bearers[m.Name]
	issuer := jwt.Issuer{Name: its.jwt.Issuer, Audiences: its.jwt.Audiences, Subjects: its.jwt.Subjects, Keys: keys}
	for n, other := range b.issuers {
		for i, subject := range issuer.Subjects {
			if other.Name == issuer.Name && slices.Contains(other.Subjects, subject) {
				c.problem(m.Problem(at.Child("subjects").Index(i), subject, "is also an identity of "+b.who[n].String()))
			}
		}
	}
	b.issuers, b.who = append(b.issuers, issuer), append(b.who, who)
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		if other := c.ids.claimKey(m.Name, keys[id]); other != m.Name {
			c.problem(m.Problem(at.Child("jwksFile"), id, "is also a key of Cluster/"+other+": give each cluster a signing key of its own"))
		}
	}
}

// claimKey enters a key, if no cluster has it, and returns which one does.
func (i *identities) claimKey(cluster string, k *jwt.Key) string {
	i.keys[k.Sum] = cmp.Or(i.keys[k.Sum], cluster)
	return i.keys[k.Sum]
}

// readKeys returns the key set in a file; nil, with a Problem, where there is none.
func (c *credentials) readKeys(m *manifest.Cluster, name string, at *field.Path) jwt.KeySet {
	if name == "" {
		return nil // validateJWT reports it
	}
	data, err := c.in.File(m.Origin, name)
	if err != nil {
		c.problem(unreadable(m.Origin, at, name, err))
		return nil
	}
	keys, skipped, err := jwt.ParseKeySet(data)
	if err != nil {
		c.problem(m.Problem(at, name, err.Error()))
	}
	for _, reason := range skipped {
		c.warn(m.Problem(at, name, reason))
	}
	return keys
}

// The bounds of what a Cluster may list.
const (
	maxAudiences = 64
	maxSubjects  = 64
)

func validateJWT(j *v1alpha1.JWT, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if j.Issuer == "" {
		errs = append(errs, field.Required(at.Child("issuer"), "the claim iss of the tokens"))
	}
	if len(j.Audiences) == 0 {
		errs = append(errs, field.Required(at.Child("audiences"), "of which the claim aud of the tokens has one, such as the URLs that are registered"))
	}
	if len(j.Audiences) > maxAudiences {
		errs = append(errs, field.TooMany(at.Child("audiences"), len(j.Audiences), maxAudiences))
	}
	if len(j.Subjects) > maxSubjects {
		errs = append(errs, field.TooMany(at.Child("subjects"), len(j.Subjects), maxSubjects))
	}
	errs = append(errs, noneEmpty(j.Audiences, at.Child("audiences"))...)
	errs = append(errs, noneEmpty(j.Subjects, at.Child("subjects"))...)
	if j.JWKSFile == "" {
		errs = append(errs, field.Required(at.Child("jwksFile"), "the issuer's public keys: kubectl get --raw /openid/v1/jwks"))
	}
	return errs
}

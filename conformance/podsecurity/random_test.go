// SPDX-License-Identifier: Apache-2.0

package podsecurity_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// dice draws what pods have that the standards look at.
type dice struct{ *rand.Rand }

// one reports true once in n.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// maybe is a pointer to one of the values, or nil.
func maybe[T any](d dice, list ...T) *T {
	if d.one(2) {
		return nil
	}
	return new(pick(d, list...))
}

func (d dice) metadata() metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: pick(d, "web", "db")}
	if d.one(4) {
		m.Annotations = map[string]string{
			"container.apparmor.security.beta.kubernetes.io/c0": pick(d, "unconfined", "runtime/default", "localhost/x", "other", ""),
		}
	}
	return m
}

// restricted is a pod that every level allows, mostly.
func (d dice) spec() corev1.PodSpec {
	spec := corev1.PodSpec{SecurityContext: d.podContext()}
	for i := range d.IntN(3) + 1 {
		spec.Containers = append(spec.Containers, d.container(fmt.Sprint("c", i)))
	}
	for i := range d.IntN(2) {
		spec.InitContainers = append(spec.InitContainers, d.container(fmt.Sprint("i", i)))
	}
	if d.one(5) {
		c := d.container("e")
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)})
	}
	for i := range d.IntN(3) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: d.volume()})
	}
	spec.HostNetwork, spec.HostPID, spec.HostIPC = d.one(12), d.one(12), d.one(12)
	if d.one(6) {
		spec.HostUsers = new(d.one(2))
	}
	if d.one(5) {
		spec.RuntimeClassName = new(pick(d, "", "gvisor", "kata"))
	}
	if d.one(6) {
		spec.OS = &corev1.PodOS{Name: pick(d, corev1.Linux, corev1.Windows)}
	}
	return spec
}

func (d dice) seccomp() *corev1.SeccompProfile {
	if d.one(3) {
		return nil
	}
	return &corev1.SeccompProfile{Type: pick(d, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeUnconfined)}
}

func (d dice) appArmor() *corev1.AppArmorProfile {
	if !d.one(6) {
		return nil
	}
	return &corev1.AppArmorProfile{Type: pick(d, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeUnconfined)}
}

func (d dice) seLinux() *corev1.SELinuxOptions {
	if !d.one(6) {
		return nil
	}
	return &corev1.SELinuxOptions{Type: pick(d, "", "container_t", "container_engine_t", "spc_t"), User: pick(d, "", "", "u"), Role: pick(d, "", "", "r")}
}

func (d dice) windows() *corev1.WindowsSecurityContextOptions {
	if !d.one(8) {
		return nil
	}
	return &corev1.WindowsSecurityContextOptions{HostProcess: maybe(d, true, false)}
}

func (d dice) podContext() *corev1.PodSecurityContext {
	if d.one(6) {
		return nil
	}
	c := &corev1.PodSecurityContext{
		RunAsNonRoot: maybe(d, true, true, false), RunAsUser: maybe(d, int64(1000), 1000, 0), SeccompProfile: d.seccomp(),
		AppArmorProfile: d.appArmor(), SELinuxOptions: d.seLinux(), WindowsOptions: d.windows(),
	}
	if d.one(6) {
		c.Sysctls = []corev1.Sysctl{{Name: pick(d, "kernel.shm_rmid_forced", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "kernel.msgmax"), Value: "1"}}
	}
	return c
}

func (d dice) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: pick(d, "a", "b", "c")}
	if !d.one(5) {
		c.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: maybe(d, false, false, false, true), RunAsNonRoot: maybe(d, true, true, false), RunAsUser: maybe(d, int64(1000), 1000, 0),
			SeccompProfile: d.seccomp(), AppArmorProfile: d.appArmor(), SELinuxOptions: d.seLinux(), WindowsOptions: d.windows(),
		}
		if d.one(8) {
			c.SecurityContext.Privileged = new(d.one(2))
		}
		if d.one(8) {
			c.SecurityContext.ProcMount = new(pick(d, corev1.DefaultProcMount, corev1.UnmaskedProcMount))
		}
		if !d.one(3) {
			c.SecurityContext.Capabilities = &corev1.Capabilities{
				Drop: pick(d, []corev1.Capability{"ALL"}, []corev1.Capability{"ALL"}, []corev1.Capability{"NET_RAW"}, nil),
				Add:  pick(d, nil, nil, []corev1.Capability{"NET_BIND_SERVICE"}, []corev1.Capability{"CHOWN", "SYS_ADMIN"}),
			}
		}
	}
	if d.one(8) {
		c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: pick(d, int32(0), 80, 12345)}}
	}
	if d.one(8) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: pick(d, "", "127.0.0.1", "example.com"), Port: intstr.FromInt32(80)}}}
	}
	if d.one(12) {
		c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: pick(d, "", "example.com"), Port: intstr.FromInt32(80)}}}
	}
	return c
}

func (d dice) volume() corev1.VolumeSource {
	return pick(d,
		corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}},
		corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}},
		corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}},
		corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
		corev1.VolumeSource{},
	)
}

// labels are those of a namespace, a few of which say nothing.
func (d dice) labels() map[string]string {
	labels := map[string]string{"team": "a"}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if !d.one(3) {
			labels["pod-security.kubernetes.io/"+mode] = pick(d, "privileged", "baseline", "baseline", "restricted", "restricted", "restricted", "strict", "")
		}
		if d.one(2) {
			labels["pod-security.kubernetes.io/"+mode+"-version"] = pick(d, "latest", "v1.0", "v1.7", "v1.19", "v1.25", "v1.30", "v1.33", "v1.34", "v1.37", "v1.40", "v2.0", "1.30", "")
		}
	}
	return labels
}

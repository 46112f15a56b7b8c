# SPDX-License-Identifier: BSD-3-Clause
"""Recipe of Spack. In a repository of one's own:

    spack repo create lintel-repo && cp -r packaging/spack/lintel lintel-repo/packages/
    spack repo add lintel-repo
    spack dev-build lintel@main       # in the source directory
"""
from spack.package import *


class Lintel(CMakePackage):
    """Portals 4.3 network programming interface: shared memory within a node; InfiniBand, RoCE, UDP
    or DPDK between nodes."""

    homepage = "https://www.sandia.gov/portals/"

    license("BSD-3-Clause")

    version("main")

    variant("build_type", default="RelWithDebInfo", description="CMake build type",
            values=("Debug", "Release", "RelWithDebInfo"))
    variant("shared", default=True, description="Build shared libraries; modules need them")
    variant("tools", default=True, description="Build ptl_info and ptl_perf")
    variant("gasnet", default=True, description="Build GASNet-EX; needs shared libraries")
    variant("crypto", default=True, description="Job keys on networks")
    variant("verbs", default=True, description="InfiniBand and RoCE")
    variant("pmix", default=True, description="Jobs started by srun and mpirun")
    variant("libfabric", default=True, description="Provider of libfabric; needs shared libraries")
    variant("dpdk", default=False, description="Ethernet ports without the kernel")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build", when="+tools")
    depends_on("nlohmann-json", type="build", when="+tools")
    depends_on("openssl@3:", when="+crypto")
    depends_on("rdma-core@32:", when="+verbs")
    depends_on("pmix@4.1:", when="+pmix")
    depends_on("libfabric@1.17:", when="+libfabric")
    depends_on("dpdk@22.11:", when="+dpdk")

    conflicts("%gcc@:10", msg="Lintel is written in C++20")
    conflicts("%clang@:13", msg="Lintel is written in C++20")

    def cmake_args(self):
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("LINTEL_TOOLS", "tools"),
            self.define_from_variant("LINTEL_GASNET", "gasnet"),
            self.define_from_variant("LINTEL_CRYPTO", "crypto"),
            self.define_from_variant("LINTEL_VERBS", "verbs"),
            self.define_from_variant("LINTEL_PMIX", "pmix"),
            self.define_from_variant("LINTEL_DPDK", "dpdk"),
            self.define_from_variant("LINTEL_OFI", "libfabric"),
            self.define("BUILD_TESTING", self.run_tests),
        ]

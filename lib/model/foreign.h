// SPDX-License-Identifier: Apache-2.0
// Tells what a file is that is no compiled model of ours, so that the message can name the way out.
#pragma once
#include <string>

#include <vartml/result.h>

#include "lib/base/file.h"

namespace vartml::artifact {

// Whether the bytes begin as a .rai of ours does.
bool looks_like_rai(Bytes bytes);
// Whether the file begins as gzip does; false for one that cannot be opened, too.
bool is_gzip(const std::string& path);
// The refusal of a regular file whose content is no .rai of ours.
Error refuse_file(const std::string& path, Bytes bytes);
// The refusal of a directory with vaiml_par_0 and without model.vmf.
Error refuse_directory(const std::string& path);
// The refusal of a .tar.gz without model.vmf.
Error refuse_archive(const std::string& path);

// NAME_mpk.json of a .tar.gz that another compiler made. Errors: those of reading it,
// refuse_archive where there is none, invalid_argument for an archive of ours.
Result<std::string> foreign_mpk(const std::string& path);

}  // namespace vartml::artifact
